import type { AttentionItem } from "../../foundation/base/attention.ts";
import type { DoctorAdvice } from "../../doctor/doctor-advice.ts";
import type { AttentionSource } from "./attention-board.ts";
import type { Examination } from "../../doctor/doctor.ts";

/** The state of the service, for those who run it. */
export interface OperatorFacts {
  /** What doctor found last; null before its first run. */
  readonly examination: Examination | null;
  /** Why the service cannot verify addresses right now. */
  readonly blockers: readonly string[];
  /** What else is wrong with it right now: egress, resolver, backups, report mail. */
  readonly findings: readonly string[];
}

const SERVICE = { text: "Show the service", path: "/settings/service" };
const SENDER = { text: "How to fix", path: "/settings/sender" };
const DOCTOR_MAX = 5;

/** The first sentence as the title, the others as the detail. */
const itemOf = (text: string, severity: AttentionItem["severity"]): AttentionItem => {
  const end = /[.!?](?= [A-Z])/.exec(text)?.index ?? text.length - 1;
  return {
    ...{ severity, label: "Service", title: text.slice(0, end).replace(/\.$/, "") },
    ...{ detail: text.slice(end + 1).trim(), action: SERVICE, sinceMs: null },
  };
};

const adviceItem = ({ title, detail, remedy, severity }: DoctorAdvice): AttentionItem => ({
  severity: severity === "fail" ? "bad" : "warn",
  label: "Sending",
  title,
  detail: remedy === null ? detail : `${detail} ${remedy}`,
  ...{ action: SENDER, sinceMs: null },
});

/** The same as a part of the board: operators see it, on the pages with live data. */
export const operatorSource = (stateOf: () => OperatorFacts): AttentionSource => ({
  section: "settings",
  itemsOf: ({ mode, user }) => (user.isOperator && mode === "live" ? operatorAttention(stateOf()) : []),
});

/** What needs an operator: the service itself, and how this machine sends. */
export const operatorAttention = ({ examination, blockers, findings }: OperatorFacts): AttentionItem[] => [
  ...blockers.map((text) => itemOf(text, "bad")),
  ...findings.map((text) => itemOf(text, "warn")),
  ...(examination?.findings ?? [])
    .filter(({ severity }) => severity !== "ok")
    .slice(0, DOCTOR_MAX)
    .map(adviceItem),
];
