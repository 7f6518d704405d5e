import type { FirstStepFacts, FirstStepsStore } from "../accounts/first-steps-store.ts";
import type { MachineState } from "../doctor/acknowledgements.ts";
import { AppError } from "../foundation/base/errors.ts";
import { manualHint } from "../foundation/base/manual-hint.ts";
import type { Db } from "../foundation/db/open.ts";
import type { Viewer } from "./visit.ts";

/** What the operator has set up, which no table of the account says. */
export interface ServiceSetUp {
  /** What the checks of the machine found. */
  readonly machine: MachineState;
  /** Whether the service can send alert mail. */
  readonly hasMail: boolean;
  /** Whether reports can arrive: by SMTP or by IMAP. */
  readonly hasReportMail: boolean;
  /** Whether a backup was written. */
  readonly hasBackup: boolean;
  /** Whether POSTWARDEN_BASE_URL is set. */
  readonly hasBaseUrl: boolean;
}

/** One of the first steps. */
export interface FirstStep {
  readonly id: StepId;
  readonly title: string;
  readonly text: string;
  readonly action: { readonly text: string; readonly path: string };
  readonly isDone: boolean;
  readonly isHidden: boolean;
}

interface StepRule {
  readonly id: string;
  readonly title: string;
  /** Who sees it; default: members and owners. */
  readonly for?: "owner" | "operator";
  readonly text: (setUp: ServiceSetUp, isOperator: boolean) => string;
  readonly action: (setUp: ServiceSetUp, isOperator: boolean) => FirstStep["action"];
  readonly isDone: (facts: FirstStepFacts, setUp: ServiceSetUp) => boolean;
}

/** What pages say of the machine before the first check of this process. */
export const MACHINE_UNCHECKED =
  "This machine has not been checked since the service started; that happens within the hour.";

const machineText = ({ machine: { checkedAtMs, isRunning, failures, warnings, passed } }: ServiceSetUp): string => {
  if (isRunning) return "The checks run now: outgoing port 25, DNS, reverse DNS, blocklists, disk, clock and backups.";
  if (checkedAtMs === null) return `${MACHINE_UNCHECKED} The checks take up to 25 seconds.`;
  const found = [
    failures.length > 0 ? `${failures.length} failed` : null,
    warnings.length > 0 ? `${warnings.length} ${warnings.length === 1 ? "warning" : "warnings"}` : null,
    `${passed} passed`,
  ];
  const first = failures[0] === undefined ? "" : ` First: ${failures[0].title}.`;
  return `${found.filter((part) => part !== null).join(", ")}.${first}`;
};

const seeManual = (section: string): string => `See ${manualHint(section)}.`;

/** In the order in which they are shown. */
const RULES = [
  {
    id: "machine",
    title: "Check this machine",
    for: "operator",
    text: machineText,
    action: ({ machine: { checkedAtMs } }) =>
      checkedAtMs === null
        ? { text: "Begin", path: "/welcome" }
        : { text: "Show the checks", path: "/settings/sender" },
    // Findings are of this process: after a restart of a service that works, the next check comes within the hour.
    isDone: ({ hasVerified }, { machine }) =>
      machine.checkedAtMs === null ? hasVerified : machine.failures.length === 0,
  },
  {
    id: "alerts",
    title: "Choose who gets alerts",
    text: ({ hasMail }, isOperator) => {
      if (hasMail) return "By mail, at a webhook URL, or in a channel such as Slack or PagerDuty.";
      return isOperator
        ? `At a webhook URL, or in a channel such as Slack or PagerDuty. For mail, set POSTWARDEN_NOTIFY_SMTP_URL and POSTWARDEN_NOTIFY_FROM. ${seeManual("webhooks-and-mail")}`
        : "At a webhook URL, or in a channel such as Slack or PagerDuty. The operator of this service has not set up mail.";
    },
    action: ({ hasMail }) => ({ text: "Choose", path: hasMail ? "/settings/notifications" : "/webhooks" }),
    isDone: ({ hasAlerts }) => hasAlerts,
  },
  {
    id: "address",
    title: "Verify an address",
    text: () => "Your own, for a start: you know what the result should be.",
    action: () => ({ text: "Verify one", path: "/verify" }),
    isDone: ({ hasVerified }) => hasVerified,
  },
  {
    id: "list",
    title: "Verify a list",
    text: () => "A CSV or Excel file, or pasted addresses. You see the cost before it starts.",
    action: () => ({ text: "Choose a file", path: "/lists" }),
    isDone: ({ hasList }) => hasList,
  },
  {
    id: "domain",
    title: "Monitor a domain",
    text: ({ hasReportMail }, isOperator) => {
      if (hasReportMail) return "Receivers then report who sends in its name. The first report takes 24 to 48 hours.";
      return isOperator
        ? "Reports cannot arrive yet: publish two DNS records and set POSTWARDEN_REPORT_HOST first."
        : "Reports cannot arrive yet. Ask the operator of this service to set up report mail.";
    },
    action: ({ hasReportMail }, isOperator) => {
      if (hasReportMail) return { text: "Enroll one", path: "/dmarc/new" };
      return isOperator
        ? { text: "Set up report mail", path: "/welcome/report-mail" }
        : { text: "Upload reports", path: "/dmarc/intake" };
    },
    isDone: ({ hasDomain }) => hasDomain,
  },
  {
    id: "target",
    title: "Watch an address on blocklists",
    text: () =>
      "The addresses and domains that you send from. You are notified when one is listed and when it is delisted.",
    action: () => ({ text: "Add one", path: "/blocklists/new" }),
    isDone: ({ hasTarget }) => hasTarget,
  },
  {
    id: "colleague",
    title: "Invite a colleague",
    for: "owner",
    text: () => "Somebody who sees problems when you are away.",
    action: () => ({ text: "Invite", path: "/settings/users" }),
    isDone: ({ hasColleague }) => hasColleague,
  },
  {
    id: "key",
    title: "Create an API key",
    for: "owner",
    text: () => "Programs use it. A test key returns fixed results for addresses such as deliverable@example.com.",
    action: () => ({ text: "Create a key", path: "/settings/keys" }),
    isDone: ({ hasKey }) => hasKey,
  },
  {
    id: "backup",
    title: "Back up the database",
    for: "operator",
    text: () =>
      `Set POSTWARDEN_BACKUP_DIR to a directory on another disk: a backup is written every day. ${seeManual("running-it#backups")}`,
    action: () => ({ text: "Show backups", path: "/settings/service" }),
    isDone: (_, { hasBackup }) => hasBackup,
  },
  {
    id: "url",
    title: "Set the public URL",
    for: "operator",
    text: () =>
      `Links in mail and webhooks begin with POSTWARDEN_BASE_URL, such as https://postwarden.example.com. ${seeManual("running-it#set-it-up")}`,
    action: () => ({ text: "Show the service", path: "/settings/service" }),
    isDone: (_, { hasBaseUrl }) => hasBaseUrl,
  },
] as const satisfies readonly StepRule[];

export type StepId = (typeof RULES)[number]["id"];

export const STEP_IDS: readonly StepId[] = RULES.map(({ id }) => id);

/** Test data has no machine, no mail and nobody who is notified. */
const LIVE_ONLY: ReadonlySet<string> = new Set(["machine", "alerts", "colleague", "backup", "url"]);

/** The first steps of a user, and which of them the user has hidden. */
export class FirstSteps {
  constructor(
    private readonly db: Db,
    private readonly deps: { readonly store: FirstStepsStore; readonly setUp: (viewer: Viewer) => ServiceSetUp },
  ) {}

  /** In their order; those that do not concern the user are left out. */
  of(viewer: Viewer): readonly FirstStep[] {
    const { user, mode, caller } = viewer;
    const facts = this.deps.store.find(caller, user.id);
    const setUp = this.deps.setUp(viewer);
    const rules: readonly (StepRule & { readonly id: StepId })[] = RULES;
    const concerns = ({ id, for: who }: StepRule): boolean =>
      (mode === "live" || !LIVE_ONLY.has(id)) &&
      (who === undefined || (who === "owner" ? user.role === "owner" : user.isOperator));
    return rules.filter(concerns).map(({ id, title, text, action, isDone }) => ({
      id,
      title,
      text: text(setUp, user.isOperator),
      action: action(setUp, user.isOperator),
      isDone: isDone(facts, setUp),
      isHidden: facts.hidden.includes(id),
    }));
  }

  /** Hides some steps from a user, or shows all again. Throws `not_found` for a step that does not exist. */
  async hide({ caller, user }: Viewer, steps: readonly string[] | null): Promise<void> {
    const known = steps?.every((step) => STEP_IDS.some((id) => id === step)) ?? true;
    if (!known) throw new AppError("not_found", { message: "There is no such step." });
    const { store } = this.deps;
    await this.db.commit((tx) => {
      const { hidden } = store.find(caller, user.id);
      store.setHidden(tx, user.id, steps === null ? [] : [...new Set([...hidden, ...steps])]);
    });
  }
}
