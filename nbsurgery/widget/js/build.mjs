// Bundles src/ into ../static (or into the folder given): one readable ES module and one style sheet.
import { build } from "esbuild";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ? resolve(process.argv[2]) : join(here, "..", "static");

await build({
  absWorkingDir: here,
  entryPoints: { widget: "src/index.js" },
  outdir: out,
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: false,
  legalComments: "none",
  charset: "utf8",
  banner: { js: "// Built by nbsurgery/widget/js/build.mjs from src/: edit there, then `npm run build`." },
});
await build({
  absWorkingDir: here,
  entryPoints: { widget: "src/theme.css" },
  outdir: out,
  bundle: true,
  minify: false,
  legalComments: "none",
  charset: "utf8",
  banner: { css: "/* Built by nbsurgery/widget/js/build.mjs from src/theme.css: edit there. */" },
});
