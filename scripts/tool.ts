/** `npm run tool -- NAME [OPTIONS]`: one of the programs that are seldom needed. Without a name, prints their names. */
const TOOLS: Readonly<Record<string, () => Promise<unknown>>> = {
  demo: () => import("./demo.ts"),
  fleet: () => import("./fleet.ts"),
  fuzz: () => import("./fuzz.ts"),
  "manual-index": () => import("./manual-index.ts"),
  openapi: () => import("./openapi.ts"),
  release: () => import("./release.ts"),
};

const [name = ""] = process.argv.splice(2, 1);
const start = TOOLS[name];
if (start === undefined) {
  console.error(`npm run tool -- ${Object.keys(TOOLS).join(" | ")}`);
  process.exit(2);
}
await start();
export {};
