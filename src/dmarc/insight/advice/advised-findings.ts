import { parseDay } from "../../../foundation/http/day-range.ts";
import type { DomainHealth } from "../health/health-schema.ts";
import type { AdvisedFinding } from "./advice-facts.ts";

const RANK = { error: 0, warning: 1, info: 2 } as const;
/** The policy is what the advice itself is about, and a key that no report proves may be made up. */
const NOT_ADVISED = /^(?:dmarc_|dkim_unproven)/;

const IN_USE_DAYS = 7;

/** The findings of a health check that advice and fixes are about, errors first. */
export const advisedFindings = (health: DomainHealth | null, today: number): readonly AdvisedFinding[] => {
  const keys = keysByHost(health, today);
  return (health?.sections ?? [])
    .flatMap<Omit<AdvisedFinding, "key">>(({ findings }) => findings)
    .filter(({ code, severity }) => severity !== "info" && !NOT_ADVISED.test(code))
    .map((finding) => ({ ...finding, key: keyIn(finding, keys) }))
    .toSorted((a, b) => RANK[a.severity] - RANK[b.severity]);
};

/** The checked keys by the names at which they are published. */
const keysByHost = (health: DomainHealth | null, today: number): ReadonlyMap<string, AdvisedFinding["key"]> => {
  const keys = health?.sections.find(({ code }) => code === "dkim");
  if (keys?.code !== "dkim") return new Map();
  return new Map(
    keys.keys.map(({ selector, domain, last_seen, messages }) => {
      const lastDay = last_seen === null ? null : parseDay(last_seen);
      return [
        `${selector}._domainkey.${domain}`,
        {
          selector,
          isInUse: lastDay !== null && lastDay > today - IN_USE_DAYS,
          isNeverValid: messages !== null && messages.passed === 0 && messages.vouched > 0,
        },
      ];
    }),
  );
};

/** A finding about a key names the host of the key. */
const keyIn = ({ code, message }: Omit<AdvisedFinding, "key">, keys: ReadonlyMap<string, AdvisedFinding["key"]>) => {
  if (!code.startsWith("dkim_")) return null;
  const host = message.split(/[\s,;]+/).find((word) => keys.has(word.replace(/\.$/, "")));
  return host === undefined ? null : (keys.get(host.replace(/\.$/, "")) ?? null);
};
