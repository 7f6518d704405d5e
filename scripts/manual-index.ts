import { createProgram } from "../src/cli/cli.ts";
import { commandTree } from "../src/cli/command-tree.ts";
import { systemIo } from "../src/cli/io.ts";
import { searchIndexOf } from "../src/service/docs/search-index.ts";
import { interfaceDocument } from "../src/service/interface-document.ts";
import { manualPages } from "../src/service/manual.ts";

/** `npm run tool -- manual-index`: writes the search index of the manual, which a test compares with its pages. */
const pages = await manualPages({
  describe: () => interfaceDocument({ version: "", baseUrl: "", description: "" }),
  commands: async () => commandTree(await createProgram(systemIo)),
});
const text = `${JSON.stringify(searchIndexOf(pages))}\n`;
await Bun.write(new URL("../src/dashboard/assets/manual-index.txt", import.meta.url), text);
console.log(`${Buffer.byteLength(text)} bytes`);
