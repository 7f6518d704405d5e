import { severityRankOf } from "../blocklist/lists/blocklist.ts";
import { SEVERITIES, type Severity } from "../foundation/base/severity.ts";
import { choice } from "./command.ts";
import { CommandFailed } from "./io.ts";

/** Exit status when something is listed that is at least as severe as `--fail-on`. */
const EXIT_LISTED = 3;

/** Fails with status 3 when one of `found` is at least as severe as `min`. */
export const failOnSeverity = (
  min: Severity | undefined,
  found: ReadonlyArray<{ readonly name: string; readonly severity: Severity | null }>,
): void => {
  if (min === undefined) return;
  const bad = found.filter(({ severity }) => severity !== null && severityRankOf(severity) >= severityRankOf(min));
  const names = [...new Set(bad.map(({ name }) => name))];
  if (names.length === 0) return;
  throw new CommandFailed(`Listed with severity ${min} or higher: ${names.join(", ")}`, "listed", EXIT_LISTED);
};

/** `--fail-on`, for commands that find listings. */
export const FAIL_ON = choice(
  "<severity>",
  SEVERITIES,
  "end with status 3 when something is listed with this severity or higher",
);
