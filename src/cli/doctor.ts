import { err, ok } from "../foundation/base/errors.ts";
import { examineMachine } from "../service/examination.ts";
import { withManualUrls } from "../foundation/base/manual-hint.ts";
import type { Config } from "../service/config.ts";
import type { DatabasePlace } from "../doctor/database-check.ts";
import type { DoctorCheck, DoctorFinding } from "../doctor/doctor-check.ts";
import { command, option, withDefault } from "./command.ts";
import { databasePath, loadConfig, prepareDatabase } from "./prepare-directory.ts";
import { CommandFailed, type Io } from "./io.ts";
import { wrapText } from "./terminal-text.ts";

/** Where the database is; creates nothing. */
export const databasePlaceOf = (io: Io, config: Config): DatabasePlace => {
  try {
    return ok(prepareDatabase(io, config, "fail"));
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    return err({ isMissing: error.code === "no_database", problem: error.message });
  }
};

const STATE_WIDTH = 6;
const INDENT = "  ";

/** The findings under the headings of their areas, wrapped at `columns`. */
export const doctorText = (findings: readonly DoctorFinding[], columns: number): string => {
  const margin = INDENT.length + STATE_WIDTH;
  const linesOf = ({ state, message }: DoctorFinding): string[] =>
    wrapText(message, columns - margin).map(
      (line, at) => `${INDENT}${(at === 0 ? state : "").padEnd(STATE_WIDTH)}${line}`,
    );
  const areas = [...new Set(findings.map(({ area }) => area))];
  const sections = areas.map((area) =>
    [area, ...findings.filter((finding) => finding.area === area).flatMap(linesOf)].join("\n"),
  );
  const count = (state: DoctorCheck["state"]): number => findings.filter((finding) => finding.state === state).length;
  const plural = (number: number, what: string): string => `${number} ${what}${number === 1 ? "" : "s"}`;
  const summary = `${count("ok")} ok, ${plural(count("warn"), "warning")}, ${plural(count("fail"), "failure")}`;
  return [...sections, summary].join("\n\n");
};

/** Findings name the manual that the service serves, where its URL is known. */
export const linkedFindings = (
  findings: readonly DoctorFinding[],
  { baseUrl, docs }: Pick<Config, "baseUrl" | "docs">,
) =>
  baseUrl === null || !docs
    ? findings
    : findings.map((finding) => ({ ...finding, message: withManualUrls(finding.message, `${baseUrl}/docs`) }));

const DOCTOR = command({
  description:
    "Check this machine and the settings: clock, disk, files, database, backups, DNS servers, HELO name, every egress, blocklists, report mail and alert mail. Suggests fixes. Sends no mail.",
  example: "doctor --env-file /etc/postwarden.env",
  json: "print JSON: checks with area, check, state (ok, warn, fail) and message",
  options: {
    domain: withDefault(option("<domain>", "domain whose mail host is used to test outgoing SMTP"), "gmail.com"),
  },
  async run({ io, envFile, print }, { domain }) {
    const config = loadConfig(io);
    const checks = await examineMachine(config, {
      domain,
      envFile,
      database: databasePath(config),
      place: () => databasePlaceOf(io, config),
    });
    print({ checks }, () => doctorText(linkedFindings(checks, config), io.columns));
    const failures = checks.filter(({ state }) => state === "fail").length;
    if (failures > 0) throw new CommandFailed(`${failures} of ${checks.length} checks failed.`, "unhealthy");
  },
});

export const DOCTOR_COMMANDS = { doctor: DOCTOR };
