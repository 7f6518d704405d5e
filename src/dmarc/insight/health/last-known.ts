import { DAY_MS, dayOfTime, isoDay } from "../../../foundation/base/days.ts";
import type { DomainHealth, HealthFinding, HealthSection } from "./health-schema.ts";

/** A finding that no later check could confirm or refute is kept for this long. */
const KEPT_MS = 30 * DAY_MS;

/**
 * The health of a domain with the findings of the check before about everything that could not be checked now. Their messages
 * say when they were last known, for up to 30 days. A new result replaces them; statuses stay as they are.
 */
export const keepLastKnown = (before: DomainHealth | null, now: DomainHealth): DomainHealth => {
  if (before === null) return now;
  const nowMs = Date.parse(now.checked_at);
  const sections = now.sections.map((section) => {
    const earlier = before.sections.find(({ code }) => code === section.code)?.findings ?? [];
    const kept = earlier
      .filter((finding) => isOpen(section, finding))
      .map((finding) => lastKnown(finding, before.checked_at))
      .filter(({ last_known_at: at }) => at !== null && nowMs - Date.parse(at) <= KEPT_MS);
    return kept.length === 0 ? section : { ...section, findings: [...section.findings, ...kept] };
  });
  return { ...now, sections };
};

/** Whether a section could not find out what an earlier finding is about. */
const isOpen = (section: HealthSection, { code, message }: HealthFinding): boolean => {
  if (section.unchecked.length === 0) return false;
  if (section.code === "dkim") {
    const unknown = section.keys.filter(({ state }) => state === "unknown");
    return unknown.some(({ selector, domain }) => message.includes(`${selector}._domainkey.${domain}`));
  }
  if (section.code === "mx" && section.hosts.length > 0) {
    return section.hosts.some(({ exchange, addresses }) => addresses === null && message.includes(exchange));
  }
  return section.findings.every((found) => found.code !== code);
};

const lastKnown = (finding: HealthFinding, checkedAt: string): HealthFinding =>
  finding.last_known_at === null
    ? {
        ...finding,
        message: `Last known on ${isoDay(dayOfTime(Date.parse(checkedAt)))}: ${finding.message}`,
        last_known_at: checkedAt,
      }
    : finding;
