import { existsSync } from "node:fs";
import { open } from "node:fs/promises";
import { resolve } from "node:path";
import { systemClock } from "../foundation/base/clock.ts";
import { createAddressPattern } from "../service/erase/address-pattern.ts";
import { writeExport } from "../service/erase/data-export.ts";
import { accountOption, argument, command, option, required } from "./command.ts";
import { accountIdOf, inDatabase } from "./data-directory.ts";
import { CommandFailed, describeFileError, type Io, UsageError } from "./io.ts";
import { sizeText } from "./terminal-text.ts";

/** The path that means standard output. */
const STDOUT = "-";
const FILE_MODE = 0o600;

const writeFile = async (path: string, pieces: AsyncIterable<Uint8Array>): Promise<number> => {
  if (existsSync(path)) throw new CommandFailed(`${path} exists already. Choose another name.`, "exists");
  const file = await open(path, "wx", FILE_MODE).catch((error: unknown) => {
    throw new CommandFailed(describeFileError(path, error), "file");
  });
  let bytes = 0;
  try {
    for await (const piece of pieces) {
      await file.writeFile(piece);
      bytes += piece.length;
    }
  } finally {
    await file.close();
  }
  return bytes;
};

const writeStdout = async (io: Io, pieces: AsyncIterable<Uint8Array>): Promise<void> => {
  if (io.stdoutKind === "terminal") throw new UsageError("--out -: the archive is not for a terminal. Redirect it.");
  for await (const piece of pieces) await io.write(piece);
};

const EXPORT = command({
  description: "Write all that is stored of an account, or about an address, as JSON files in a ZIP archive.",
  example: "export ada@example.com --out ada.zip",
  on: inDatabase,
  args: { person: argument("[address]", "the same as --address") },
  options: {
    out: required(option("<file>", "the archive, a new file; - is standard output")),
    address: option("<address>", "only rows with this address; without --account, of all accounts"),
    account: accountOption,
  },
  async run({ db, io, print, audit }, { person, out, address: named, account }) {
    if (person !== undefined && named !== undefined)
      throw new UsageError("Name the address once: as the argument or with --address.", "address");
    const address = person ?? named;
    if (address !== undefined) {
      const pattern = createAddressPattern(address);
      if (!pattern.ok) throw new UsageError(pattern.error, "address");
    }
    const isOfAll = address !== undefined && account === undefined;
    const accountId = isOfAll ? null : accountIdOf(db, account);
    const subject = { accountId, address: address ?? null };
    const pieces = writeExport(db, subject, systemClock.nowMs());
    // Never the address: the audit log is not erased.
    const action = {
      action: "export",
      accountId,
      subject: accountId,
      after: { of: address === undefined ? "account" : "address" },
    };
    if (out === STDOUT) return audit.perform({ action, work: () => writeStdout(io, pieces) });
    const path = resolve(out);
    const bytes = await audit.perform({ action, work: () => writeFile(path, pieces) });
    print({ file: path, bytes }, () => `${path}: ${sizeText(bytes)}. It contains personal data.`);
  },
});

export const EXPORT_COMMANDS = { export: EXPORT };
