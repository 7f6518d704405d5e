import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ZipFile } from "yazl";
import { interfaceDocument } from "../../../src/service/interface-document.ts";
import { type ClientModel, clientModel } from "./operations.ts";
import { pythonClient } from "./python.ts";
import { typescriptDeclarations, typescriptRuntime } from "./typescript.ts";

const DESCRIPTION = "Client of the Postwarden API: email verification, DMARC monitoring, blocklist monitoring.";
const HERE = new URL("./", import.meta.url).pathname;
const LICENSE = join(HERE, "../../../LICENSE");

/** Path in the package → content. */
type Files = Readonly<Record<string, string>>;

const readmeOf = async (language: string, version: string): Promise<string> =>
  (await Bun.file(join(HERE, `README-${language}.md`)).text()).replaceAll("VERSION", version);

const npmFiles = async (model: ClientModel): Promise<Files> => {
  const { version } = model;
  const manifest = {
    ...{ name: "postwarden-client", version, description: DESCRIPTION, license: "MIT", type: "module" },
    exports: { ".": { types: "./index.d.ts", default: "./index.js" } },
    ...{ types: "./index.d.ts", files: ["index.js", "index.d.ts"], engines: { node: ">=20.3" } },
  };
  return {
    "package.json": `${JSON.stringify(manifest, null, 2)}\n`,
    "index.js": typescriptRuntime(model),
    "index.d.ts": typescriptDeclarations(model),
    "README.md": await readmeOf("typescript", version),
    LICENSE: await Bun.file(LICENSE).text(),
  };
};

const pythonFiles = async (model: ClientModel): Promise<Files> => {
  const { version } = model;
  const info = `postwarden_client-${version}.dist-info`;
  const metadata = [
    "Metadata-Version: 2.1",
    "Name: postwarden-client",
    `Version: ${version}`,
    `Summary: ${DESCRIPTION}`,
    "License: MIT",
    "Requires-Python: >=3.9",
    "Description-Content-Type: text/markdown",
  ];
  return {
    "postwarden_client/__init__.py": pythonClient(model),
    "postwarden_client/py.typed": "",
    [`${info}/METADATA`]: `${metadata.join("\n")}\n\n${await readmeOf("python", version)}`,
    [`${info}/WHEEL`]: "Wheel-Version: 1.0\nGenerator: postwarden\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    [`${info}/LICENSE`]: await Bun.file(LICENSE).text(),
  };
};

/** The files of both clients. */
export const clientFiles = async (version: string): Promise<{ readonly npm: Files; readonly python: Files }> => {
  const info = { version, baseUrl: "https://postwarden.example.com", description: DESCRIPTION };
  const model = clientModel(await interfaceDocument(info));
  return { npm: await npmFiles(model), python: await pythonFiles(model) };
};

/** Writes files below a folder. */
export const writeFiles = (folder: string, files: Files): void => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
};

/** A wheel (PEP 427): a zip archive with the sum of each file. All times are equal, in every time zone. */
const wheelOf = async (files: Files, version: string): Promise<Uint8Array> => {
  const record = `postwarden_client-${version}.dist-info/RECORD`;
  const sums = Object.entries(files).map(([path, text]) => {
    const sum = new Bun.CryptoHasher("sha256").update(text).digest("base64url");
    return `${path},sha256=${sum},${Buffer.byteLength(text)}\n`;
  });
  const zip = new ZipFile();
  const options = { mtime: new Date(2000, 0, 1), forceDosTimestamp: true, mode: 0o100644 };
  for (const [path, text] of Object.entries({ ...files, [record]: `${sums.join("")}${record},,\n` }))
    zip.addBuffer(Buffer.from(text), path, options);
  zip.end();
  const parts: Buffer[] = [];
  for await (const part of zip.outputStream) parts.push(Buffer.from(part));
  return Buffer.concat(parts);
};

/** Writes the packages of both clients to `folder`, and returns their names. */
export const buildClients = async (folder: string, version: string): Promise<readonly string[]> => {
  const { npm, python } = await clientFiles(version);
  const stage = mkdtempSync(join(tmpdir(), "postwarden-client-"));
  try {
    writeFiles(stage, npm);
    const pack = ["npm", "pack", "--ignore-scripts", "--silent", `--pack-destination=${folder}`];
    const { success } = Bun.spawnSync(pack, { cwd: stage, stdio: ["ignore", "ignore", "inherit"] });
    if (!success) throw new Error("npm pack failed");
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
  const wheel = `postwarden_client-${version}-py3-none-any.whl`;
  await Bun.write(join(folder, wheel), await wheelOf(python, version));
  return [`postwarden-client-${version}.tgz`, wheel];
};
