import { readFileSync } from "node:fs";
import { type ParseArgsConfig, parseArgs } from "node:util";

const EXIT_USAGE = 2;

/** The comment at the head of a script, as text. */
const headOf = (script: string): string => {
  const [head = ""] = readFileSync(script, "utf8").split("*/");
  return head
    .replace(/^\/\*\*(?:\n \*)?\s*/, "")
    .replaceAll(/\n \*( |$)/gm, "\n")
    .trim();
};

/**
 * The options of a script (`import.meta.path`), as `parseArgs` reads them. `--help` prints the comment at the head of the script; a
 * wrong option ends it with a line and status 2.
 */
export const readOptions = <const T extends ParseArgsConfig>(script: string, config: T) => {
  if (process.argv.includes("--help")) {
    console.log(headOf(script));
    process.exit(0);
  }
  try {
    return parseArgs(config);
  } catch (error) {
    const [reason] = (error instanceof Error ? error.message : String(error)).split("\n");
    console.error(`${reason} (--help says what there is)`);
    process.exit(EXIT_USAGE);
  }
};
