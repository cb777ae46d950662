// Builds bundle/explain.js, which is committed, so that neither tests nor users need npm.
//
// ELK's worker is most of it. It is kept compressed, and unpacked when a graph is first opened.

import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { gzipSync } from "node:zlib";
import path from "node:path";
import { build } from "esbuild";

const require = createRequire(import.meta.url);
const worker = await readFile(require.resolve("elkjs/lib/elk-worker.min.js"));

const built = await build({
  entryPoints: ["src/main.js"],
  bundle: true,
  minify: true,
  // A module may wait for its data.
  format: "esm",
  target: ["chrome111", "firefox115", "safari16.4"],
  charset: "utf8",
  legalComments: "none",
  metafile: true,
  write: false,
  plugins: [
    {
      name: "elk-worker",
      setup(hooks) {
        hooks.onResolve({ filter: /^elk-worker$/ }, (found) => ({
          path: found.path,
          namespace: "elk-worker",
        }));
        hooks.onLoad({ filter: /.*/, namespace: "elk-worker" }, () => ({
          contents: gzipSync(worker, { level: 9 }).toString("base64"),
          loader: "text",
        }));
      },
    },
  ],
});
const text = built.outputFiles[0].text;
// Within a page, nothing may look like the end of the script.
await writeFile("bundle/explain.js", text.replaceAll("</script", "<\\/script"));
await writeFile("bundle/LICENSES.txt", await licences([...Object.keys(built.metafile.inputs)]));

// The licence of each package that something was taken from.
async function licences(inputs) {
  const names = inputs.map((input) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input)?.[1]);
  const texts = [];
  for (const name of [...new Set([...names.filter(Boolean), "elkjs"])].sort()) {
    const folder = path.join("node_modules", name);
    const about = JSON.parse(await readFile(path.join(folder, "package.json"), "utf8"));
    texts.push(`${name} ${about.version}, ${about.license}\n\n${await licence(folder)}`);
  }
  const line = `\n${"-".repeat(80)}\n\n`;
  return `What explain.js is made of, unchanged but for bundling.\n${line}${texts.join(line)}`;
}

async function licence(folder) {
  for (const name of ["LICENSE", "LICENSE.md", "LICENSE.txt"]) {
    try {
      return await readFile(path.join(folder, name), "utf8");
    } catch (error) {
      if (error.code !== "ENOENT") throw error;
    }
  }
  throw new Error(`${folder} has no licence`);
}
