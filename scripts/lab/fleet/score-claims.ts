import { FORGED, FORGED_IP, LIAR } from "./schedule.ts";
import type { SimulationResult } from "./simulate.ts";

/** A sentence that must be true of the whole run. */
export interface Claim {
  readonly what: string;
  readonly expected: string;
  readonly got: string;
  readonly isRight: boolean;
}

const claim = (what: string, expected: string, got: string): Claim => ({
  what,
  expected,
  got,
  isRight: expected === got,
});

const bad = new RegExp(LIAR.replaceAll(".", "\\."), "i");

/** Sources whose messages are not those of their records. */
const wrongSums = (domains: SimulationResult["domains"]): number => {
  const wrong = domains.map(({ observed }) => {
    const counts = new Map<string, number>();
    for (const { source, count } of observed.rows) counts.set(source, (counts.get(source) ?? 0) + count);
    return observed.sources.filter(({ key, messages }) => counts.get(key) !== messages).length;
  });
  return wrong.reduce((sum, count) => sum + count, 0);
};

/** A digest that sums forgery up, as quoted-printable brings it. */
const SUMMED_UP =
  /unauthenticated mail from \d[\d,]* (?:networks?|addresses)|\d[\d,]* messages? from \d[\d,]* (?:networks?|addresses)/i;
const plainOf = (text: string): string => text.replace(/=\r\n/g, "");

/** What must hold about forged reports, and about every mail that came. */
export const claimsOf = ({ domains, logged }: SimulationResult): Claim[] => {
  const outcomes = domains.flatMap(({ observed }) => observed.ingestions);
  const lost = outcomes.filter(({ outcome }) => outcome === "rejected" || outcome === "");
  const general: Claim[] = [
    claim("report mails that were rejected or never read", "0", String(lost.length)),
    claim("sources whose messages are not those of their records", "0", String(wrongSums(domains))),
    claim("errors in the log", "0", String(logged.filter((line) => line.includes('"error"')).length)),
  ];
  const forgedDomain = domains.find(({ plan }) => plan.isForgedSteadily === true);
  if (forgedDomain !== undefined) {
    const isSummedUp = forgedDomain.mails.some(
      ({ subject, text }) => /digest/i.test(subject) && SUMMED_UP.test(plainOf(text)),
    );
    general.push(claim("a digest sums forgery up in one line", "yes", isSummedUp ? "yes" : "no"));
  }
  const lied = domains.find(({ plan }) => plan.isReportForged === true);
  if (lied === undefined) return general;
  const { observed } = lied;
  const forged = observed.rows.filter(({ reportId }) => reportId.startsWith(`${FORGED}bare`));
  const differing = observed.ingestions.filter(({ reason }) => reason === "duplicate_differs");
  return [
    ...general,
    claim(
      "messages of forged reports without authentication that count",
      "0",
      String(forged.reduce((sum, { count }) => sum + count, 0)),
    ),
    claim("genuine reports kept out by a signed forgery", "0", String(differing.length)),
    claim(
      "a signed liar is shown by the name of its domain",
      "yes",
      observed.reporters.some((name) => bad.test(name)) || observed.rows.every(({ ip }) => ip !== FORGED_IP)
        ? "yes"
        : "no",
    ),
  ];
};
