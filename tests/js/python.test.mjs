// Colours of code.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SOURCE } from "./page.mjs";

const { parts } = await import(new URL("python.js", SOURCE));
const kinds = (source) => parts(source).filter((p) => p.kind).map((p) => [p.text, p.kind]);

test("the parts joined are the source, whatever it is", () => {
  for (const source of ["", "x = '", 'f"""a\nb', "größe = 1e-3 # é", "a\\\nb", "\u0000'\"#", "x='\\'' + \"#\""])
    assert.equal(parts(source).map((p) => p.text).join(""), source);
});

test("keywords, names, strings, numbers and comments", () => {
  assert.deepEqual(kinds("class Net(nn.Module):  # a 'b'"), [
    ["class", "keyword"], ["Net", "defined"], ["# a 'b'", "comment"],
  ]);
  assert.deepEqual(kinds("x = f(self.a, 10, 'not # one')"), [
    ["f", "called"], ["self", "self"], ["10", "number"], ["'not # one'", "string"],
  ]);
  assert.deepEqual(kinds('"""a\nb""" or None'), [['"""a\nb"""', "string"], ["or", "keyword"], ["None", "keyword"]]);
});
