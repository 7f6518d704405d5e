import { mkdtempSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileSource } from "../bulk/reading/byte-source.ts";
import { CommandFailed, type Io, UsageError } from "./io.ts";
import type { PathOptions } from "./verify-file-paths.ts";

/** The path that means standard input or output. */
const STREAM = "-";

const saveStdin = async (io: Io, path: string): Promise<void> => {
  if (io.stdinIsTerminal) throw new UsageError("--file - reads standard input: pipe a list in.");
  const file = await open(path, "wx", 0o600);
  try {
    for await (const chunk of io.stdin()) await file.writeFile(chunk);
  } finally {
    await file.close();
  }
};

/**
 * Replaces `-` by the paths of temporary files: standard input is saved first, because a list is read more than once, and
 * results are written to standard output when they are complete. Everything else goes to standard error.
 */
export const withStreams = async <O extends PathOptions>(
  options: O,
  io: Io,
  work: (options: O, io: Io) => Promise<void>,
): Promise<void> => {
  const { file, out } = options;
  if (file !== STREAM && out !== STREAM) return work(options, io);
  const folder = mkdtempSync(join(tmpdir(), "postwarden-"));
  const paths = {
    ...(file === STREAM ? { file: join(folder, "list") } : {}),
    ...(out === STREAM ? { out: join(folder, "results.csv") } : {}),
  };
  try {
    if (paths.file !== undefined) await saveStdin(io, paths.file);
    await work(
      { ...options, ...paths, ...(out === STREAM ? { outName: STREAM } : {}) },
      paths.out === undefined ? io : { ...io, out: io.err },
    );
    if (paths.out !== undefined) for await (const chunk of fileSource(paths.out)()) await io.write(chunk);
  } catch (error) {
    const isLost = paths.out !== undefined && error instanceof CommandFailed && error.code === "interrupted";
    throw isLost ? new CommandFailed("Interrupted. Only a run with --out FILE can be resumed.", "interrupted") : error;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
