import { openSync, readSync, closeSync } from "node:fs";

/** Names of architectures: Debian's, that of Bun's compile targets, and the machine number in an ELF header (e_machine). */
export const ARCHITECTURES = [
  // The baseline runs on processors without AVX2, such as the default CPU type of several hypervisors.
  { debian: "amd64", release: "x64", target: "bun-linux-x64-baseline", elfMachine: 62 },
  { debian: "arm64", release: "arm64", target: "bun-linux-arm64", elfMachine: 183 },
] as const;

export type Architecture = (typeof ARCHITECTURES)[number];

const E_MACHINE_OFFSET = 18;

/** The machine that an executable is for (e_machine of ELF); null when the file is no ELF file. */
export const elfMachineOf = (path: string): number | null => {
  const header = Buffer.alloc(E_MACHINE_OFFSET + 2);
  const file = openSync(path, "r");
  try {
    readSync(file, header);
  } finally {
    closeSync(file);
  }
  return header.toString("latin1", 0, 4) === "\x7fELF" ? header.readUInt16LE(E_MACHINE_OFFSET) : null;
};
