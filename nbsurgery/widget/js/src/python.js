// @ts-check
// Cuts Python source into coloured parts; enough for short emitted code, no parser.

const KEYWORDS = new Set(
  ("False None True and as assert async await break class continue def del elif else except finally " +
   "for from global if import in is lambda nonlocal not or pass raise return try while with yield").split(" "));

const PART = new RegExp([
  /(?<comment>#[^\n]*)/u,
  /(?<string>[rbfuRBFU]{0,2}(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))/u,
  /(?<number>\b(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.[\d_]*)?(?:[eE][+-]?\d+)?)\b)/u,
  /(?<name>[\p{L}_][\p{L}\p{N}_]*)/u,
  /(?<space>\s+)/u,
  /(?<sign>[^\s\p{L}_\d"'#]+)/u,
].map((part) => part.source).join("|"), "gu");

/**
 * @param {string} source
 * @returns {{text: string, kind: string}[]} the parts joined are the source
 */
export function parts(source) {
  const found = [];
  let at = 0;
  let before = "";
  for (const match of source.matchAll(PART)) {
    if (match.index > at) found.push({ text: source.slice(at, match.index), kind: "" });
    const [text] = match;
    let kind = Object.entries(match.groups ?? {}).find(([, value]) => value !== undefined)?.[0] ?? "";
    const after = source.slice(match.index + text.length, match.index + text.length + 1);
    if (kind === "name") {
      if (KEYWORDS.has(text)) kind = "keyword";
      else if (before === "def" || before === "class") kind = "defined";
      else if (text === "self") kind = "self";
      else kind = after === "(" ? "called" : "";
    } else if (kind === "space" || kind === "sign") kind = "";
    if (text.trim()) before = text;
    found.push({ text, kind });
    at = match.index + text.length;
  }
  if (at < source.length) found.push({ text: source.slice(at), kind: "" });
  return found;
}
