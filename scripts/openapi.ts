/**
 * `npm run tool -- openapi`: lints the OpenAPI document with redocly and spectral, generates a TypeScript client from it with
 * openapi-typescript, and type-checks a program that calls every operation. The tools are installed in a temporary folder.
 */
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { interfaceDocument } from "../src/service/interface-document.ts";
import { VERSION } from "../src/service/version.ts";
import { clientProgram, documentSchema } from "./openapi-client.ts";

const TOOLS = new URL("openapi-tools/", import.meta.url).pathname;
const TSCONFIG = {
  compilerOptions: {
    ...{ strict: true, noEmit: true, target: "ESNext", module: "ESNext", moduleResolution: "bundler" },
    ...{ lib: ["ESNext", "DOM"], types: [], skipLibCheck: true, allowImportingTsExtensions: true },
  },
  include: ["client.ts"],
};

const folder = await mkdtemp(join(tmpdir(), "postwarden-openapi-"));
let failures = 0;

/** Runs a command in the temporary folder; counts a failure and shows its output. */
const step = async (name: string, command: readonly string[]): Promise<void> => {
  const run = Bun.spawn([...command], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  const [status, output, errors] = await Promise.all([
    run.exited,
    new Response(run.stdout).text(),
    new Response(run.stderr).text(),
  ]);
  console.log(`${status === 0 ? "ok  " : "FAIL"} ${name}`);
  if (status === 0) return;
  failures++;
  console.log(output.slice(0, 20_000) + errors.slice(0, 5_000));
};
const tool = (name: string) => join("node_modules", ".bin", name);

try {
  const document = await interfaceDocument({
    version: VERSION,
    baseUrl: "https://postwarden.example",
    description: "The API.",
  });
  for (const file of ["package.json", "package-lock.json", "redocly.yaml", "spectral.yaml"])
    await cp(join(TOOLS, file), join(folder, file));
  await writeFile(join(folder, "openapi.json"), JSON.stringify(document, null, 2));
  await writeFile(join(folder, "client.ts"), clientProgram(documentSchema.parse(JSON.parse(JSON.stringify(document)))));
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(TSCONFIG));

  await step("install", ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
  await step("redocly", [tool("redocly"), "lint", "openapi.json", "--max-problems=1000"]);
  await step("spectral", [
    tool("spectral"),
    "lint",
    "openapi.json",
    "--ruleset",
    "spectral.yaml",
    "--fail-severity=hint",
  ]);
  await step("openapi-typescript", [tool("openapi-typescript"), "openapi.json", "-o", "schema.d.ts"]);
  await step("client program", [tool("tsc"), "--project", "tsconfig.json"]);
} finally {
  await rm(folder, { recursive: true, force: true });
}
console.log(`${5 - failures} passed, ${failures} failed`);
process.exit(failures === 0 ? 0 : 1);
