import { errorText } from "../foundation/base/errors.ts";
import type { Clock } from "../foundation/base/clock.ts";
import { sha256 } from "../foundation/base/secrets.ts";
import { manualHint } from "../foundation/base/manual-hint.ts";
import { waitFor } from "../foundation/base/wait.ts";

/** One finding of `doctor`. `warn` needs attention; `fail` keeps Postwarden from working. */
export interface DoctorCheck {
  readonly check: string;
  readonly state: "ok" | "warn" | "fail";
  /** Sentences; those of `warn` and `fail` end with what to do. */
  readonly message: string;
}

const titles = new Map<string, string>();
const sections = new Map<string, string>();

/** The title of a check in pages, such as `Outgoing port 25`; undefined for what ends a check itself. */
export const titleOf = (check: string): string | undefined => titles.get(check);

/** The section of the manual about each check, such as `sender-reputation#helo-name`. */
export const CHECK_SECTIONS: ReadonlyMap<string, string> = sections;

/** Declares a check by its name, with its title in pages and its section of the manual, and returns what makes its findings. */
export const doctorFindings = (check: string, title?: string, section?: string) => {
  if (title !== undefined) titles.set(check, title);
  if (section !== undefined) sections.set(check, section);
  return {
    ok: (message: string): DoctorCheck => ({ check, state: "ok", message }),
    warn: (message: string): DoctorCheck => ({ check, state: "warn", message }),
    fail: (message: string): DoctorCheck => ({ check, state: "fail", message }),
  };
};

type Found = DoctorCheck | readonly DoctorCheck[];

/** One check, under the heading of its findings. Checks of one area stand together. */
export interface AreaCheck {
  readonly area: string;
  readonly run: () => Found | Promise<Found>;
}

/** A finding as it is shown. */
export interface DoctorFinding extends DoctorCheck {
  readonly area: string;
}

/** A check that takes longer is given up. All run at the same time, so that this bounds the whole run. */
const CHECK_MS_MAX = 25_000;

/** The findings of one check; what it throws is one, so that it does not hide the findings of the others. */
const runCheck = async ({ area, run }: AreaCheck, clock: Clock): Promise<readonly DoctorCheck[]> => {
  const { warn, fail } = doctorFindings(area.toLowerCase().replaceAll(" ", "_"));
  try {
    const waited = await waitFor(clock, Promise.resolve().then(run), { timeoutMs: CHECK_MS_MAX });
    if (waited.ok) return [waited.value].flat();
    return [
      warn(
        `A check was not finished within ${CHECK_MS_MAX / 1_000} seconds: a server responds too slowly. Run doctor again.`,
      ),
    ];
  } catch (error) {
    return [fail(`A check ended with an error: ${errorText(error)}. Run doctor as root.`)];
  }
};

/** A finding that needs attention ends with the section of the manual about it. */
const withManual = (finding: DoctorFinding): DoctorFinding => {
  const section = finding.state === "ok" ? undefined : sections.get(finding.check);
  if (section === undefined) return finding;
  const hint = manualHint(section);
  // Some messages end with a command to run.
  const isSentence = /[.)]$/.test(finding.message);
  return { ...finding, message: `${finding.message} ${isSentence ? `See ${hint}.` : `(see ${hint})`}` };
};

/** Runs all checks at the same time, each within its deadline; the findings are in the order of the checks. */
export const runChecks = async (checks: readonly AreaCheck[], clock: Clock): Promise<readonly DoctorFinding[]> => {
  const found = await Promise.all(
    checks.map(async (check) => (await runCheck(check, clock)).map((finding) => ({ area: check.area, ...finding }))),
  );
  return found.flat().map(withManual);
};

/** A time, or a number that stands alone: an age or a size changes with every run, an address does not. */
const FIGURES = /\d{4}-\d\d-\d\dT[\d:.]+Z|(?<![\w.:/-])\d+(?:\.\d+)?(?![\w:/-]|\.\w)/g;
const KEY_CHARACTERS = 24;

/**
 * Identifies a warning by its check and its words, whatever figures are in them: another warning of the same check, about another
 * address or with another cause, has another key.
 */
export const warningKey = ({ check, message }: Pick<DoctorFinding, "check" | "message">): string =>
  sha256(`${check}\n${message.replace(FIGURES, "#")}`).slice(0, KEY_CHARACTERS);
