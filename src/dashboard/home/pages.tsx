import { z } from "zod";
import type { Clock } from "../../foundation/base/clock.ts";
import { DAY_MS, dayOfTime, isoDay } from "../../foundation/base/days.ts";
import type { RunningList } from "../../bulk/job-queries.ts";
import type { ChangeCounts, TargetFigures } from "../../blocklist/target-table.ts";
import type { AlertChanges } from "../../dmarc/alerts/rules/open-alert-store.ts";
import type { MailInName } from "../../dmarc/alerts/overview/dmarc-overview.ts";
import { ACKNOWLEDGED_DAYS, type MachineAcknowledgements } from "../../doctor/acknowledgements.ts";
import type { AccountUsage, NameOfKey, UsageReport } from "../../accounts/usage/account-usage.ts";
import type { History } from "../../verify/history.ts";
import type { FirstStep, FirstSteps } from "../first-steps.ts";
import { formAction, page } from "../page.ts";
import { redirectTo, type View, type Viewer } from "../visit.ts";
import type { AttentionBoard } from "./attention-board.ts";
import { BarChart } from "../components/chart.tsx";
import { Mono } from "../components/copy.tsx";
import { Button, PostForm } from "../components/form.tsx";
import { ButtonLink, Link } from "../components/inline.tsx";
import { Callout, Columns, PageHead, Panel, Stat, Stats } from "../components/panel.tsx";
import { durationText, countText, numberText, percentText, Ring } from "../components/figures.tsx";
import { ResultBadge, VerifyBox } from "../components/verification.tsx";
import type { VerificationRow } from "../../verify/store.ts";
import { OpenProblems, type OpenProblemsProps } from "./open-problems.tsx";
import { shareTrend, type Trend, weeksOf } from "./trends.ts";

export interface HomeUseCases {
  readonly clock: Clock;
  readonly board: AttentionBoard;
  readonly usage: AccountUsage;
  readonly history: History;
  readonly machine: MachineAcknowledgements;
  readonly steps: Pick<FirstSteps, "of">;
  readonly nameOf: NameOfKey;
  readonly runningLists: (viewer: Viewer) => readonly RunningList[];
  readonly targets: (viewer: Viewer) => TargetFigures;
  readonly mailInName: (viewer: Viewer) => MailInName;
  /** How many lists were completed since a time. */
  readonly completedLists: (viewer: Viewer, sinceMs: number) => number;
  readonly listingChanges: (viewer: Viewer, sinceMs: number) => ChangeCounts;
  readonly alertChanges: (viewer: Viewer, sinceMs: number) => AlertChanges;
}

const DAYS = 30;
const LATEST = 6;
const WEEK_MS = 7 * DAY_MS;
const REASON_CHARACTERS_MAX = 200;

const warningParams = z.object({ warning: z.string().max(100) });
const acknowledgeForm = z.object({
  reason: z
    .string()
    .trim()
    .min(1, "Say why, for those who come after you")
    .max(REASON_CHARACTERS_MAX, `At most ${REASON_CHARACTERS_MAX} characters`),
  days: z
    .enum(ACKNOWLEDGED_DAYS.map(String))
    .transform((days) => ACKNOWLEDGED_DAYS.find((one) => String(one) === days) ?? 7),
});

/** The home page: is anything wrong? */
export const createHomePages = (useCases: HomeUseCases) => {
  const { machine } = useCases;
  return [
    page({ path: "/" }, ({ viewer }) => homeView(useCases, viewer)),
    formAction(
      { path: "/machine/:warning/acknowledge", params: warningParams, form: acknowledgeForm },
      async ({ viewer, params: { warning }, form: { reason, days }, done }) => {
        done.after = { days };
        await machine.acknowledge({ warning, reason, days, by: viewer.caller.keyId });
        return redirectTo(viewer, "/", { ok: `Acknowledged for ${days} days.` });
      },
      { rerender: ({ viewer }) => homeView(useCases, viewer) },
    ),
    formAction(
      { path: "/machine/:warning/withdraw", params: warningParams },
      async ({ viewer, params: { warning } }) => {
        await machine.withdraw(warning);
        return redirectTo(viewer, "/", { ok: "The warning shows again." });
      },
    ),
  ];
};

const homeView = async (useCases: HomeUseCases, viewer: Viewer): Promise<View> => {
  const { clock, board, usage, history, machine, nameOf } = useCases;
  const toDay = dayOfTime(clock.nowMs());
  const fromDay = toDay - DAYS + 1;
  const yesterdayMs = (toDay - 1) * DAY_MS;
  const latest = await history.page(viewer.caller, {}, { before: null, limit: LATEST });
  const [targets, mail] = [useCases.targets(viewer), useCases.mailInName(viewer)];
  const facts: HomeFacts = {
    fromDay,
    toDay,
    targets,
    mail,
    nameOf,
    items: board.items(viewer),
    machine: viewer.user.isOperator && viewer.mode === "live" ? machine.state() : null,
    isMonitoring: targets.total > 0 || mail.domains > 0,
    days: await usage.report(viewer.caller, { fromDay, toDay }, "day"),
    latest: latest.rows,
    lists: useCases.runningLists(viewer),
    steps: viewer.mode === "live" ? useCases.steps.of(viewer) : [],
    listings: useCases.listingChanges(viewer, clock.nowMs() - WEEK_MS),
    since: {
      lists: useCases.completedLists(viewer, yesterdayMs),
      listings: useCases.listingChanges(viewer, yesterdayMs),
      alerts: useCases.alertChanges(viewer, yesterdayMs),
    },
  };
  return { title: "Home", section: "home", body: <HomeBody {...facts} /> };
};

/** Figures come first, then open problems. */
const HomeBody = (facts: HomeFacts) => (
  <>
    <PageHead title="Overview" meta={<Summary {...facts} />} />
    <Figures {...facts} />
    {isNew(facts) ? <SetUp /> : <StepsLine {...facts} />}
    <OpenProblems {...facts} />
    <Columns side={<VerifyPanel {...facts} />}>
      <VerdictsPanel {...facts} />
    </Columns>
  </>
);

const Summary = ({ items, since, days, toDay }: HomeFacts) => {
  const urgent = items.filter(({ severity }) => severity === "bad").length;
  const open =
    items.length === 0
      ? "No open problems."
      : `${countText(items.length, "open problem")}${urgent > 0 ? `, ${urgent} urgent` : ""}.`;
  const verified = sinceDay(days, toDay - 1);
  return (
    <>
      <span>{open}</span>
      <span title="Since 00:00 UTC of yesterday">Since yesterday: {changesText({ ...since, verified })}.</span>
    </>
  );
};

/** Verifications that ended on a day (UTC) or later. */
const sinceDay = ({ groups }: UsageReport, fromDay: number): number =>
  groups.filter(({ group }) => group >= isoDay(fromDay)).reduce((sum, { total }) => sum + total, 0);

/** "657 addresses verified, 1 new listing". */
const changesText = ({
  verified,
  lists,
  listings,
  alerts,
}: HomeFacts["since"] & { readonly verified: number }): string => {
  const over = listings.isComplete ? "" : "over ";
  const parts = [
    [verified, countText(verified, "address", "addresses"), "verified"],
    [lists, countText(lists, "list"), "finished"],
    [listings.listed, `${over}${countText(listings.listed, "new listing")}`, ""],
    [listings.delisted, `${over}${countText(listings.delisted, "delisting")}`, ""],
    [alerts.raised, countText(alerts.raised, "DMARC alert"), "raised"],
    [alerts.acknowledged, countText(alerts.acknowledged, "alert"), "acknowledged"],
  ] as const;
  const shown = parts.filter(([count]) => count > 0).map(([, what, verb]) => `${what} ${verb}`.trim());
  return shown.length === 0 ? "nothing has changed" : shown.join(", ");
};

/** Nothing is verified or monitored yet, so nothing can need attention. */
const isNew = ({ latest, days, targets, mail }: HomeFacts): boolean =>
  latest.length === 0 && days.total.total === 0 && targets.total === 0 && mail.domains === 0;

const SetUp = () => (
  <Callout
    kind="info"
    title="Set up Postwarden"
    actions={
      <ButtonLink href="/welcome" kind="main">
        First steps
      </ButtonLink>
    }
  >
    <p>Verify a first address, and choose the domains and addresses that are monitored for you and who gets alerts.</p>
  </Callout>
);

const StepsLine = ({ steps }: HomeFacts) => {
  const shown = steps.filter(({ isHidden, isDone }) => isDone || !isHidden);
  const left = shown.filter(({ isDone }) => !isDone);
  const [next] = left;
  if (next === undefined) return null;
  return (
    <section class="panel steps-line" aria-label="First steps">
      <Ring done={shown.length - left.length} total={shown.length} />
      <p>
        <Link href="/welcome">First steps</Link>
        <span class="second">Next: {next.title}</span>
      </p>
      <ButtonLink href={next.action.path}>{next.action.text}</ButtonLink>
      <PostForm action="/welcome/hide">
        {left.map(({ id }) => (
          <input key={id} type="hidden" name="steps" value={id} />
        ))}
        <Button kind="quiet">Hide</Button>
      </PostForm>
    </section>
  );
};

const Figures = (facts: HomeFacts) => {
  const { days, toDay, lists, mail, targets, listings } = facts;
  const { now, before } = weeksOf(days, { toDay });
  const today = sinceDay(days, toDay);
  const aligned = { part: mail.aligned, whole: mail.messages };
  const alignedBefore = mail.before && { part: mail.before.aligned, whole: mail.before.messages };
  return (
    <Stats>
      <Stat
        label="Deliverable, 7 days"
        href="/usage?days=7"
        value={now.whole === 0 ? "–" : percentText(now.part / now.whole)}
        trend={shareTrend(now, before)}
        note={
          now.whole === 0
            ? "nothing verified in these days"
            : `${numberText(now.whole)} verified, ${numberText(today)} today`
        }
      />
      <Stat
        label="Aligned mail, 7 days"
        href="/dmarc"
        value={mail.messages === 0 ? "–" : percentText(mail.aligned / mail.messages)}
        trend={shareTrend(aligned, alignedBefore)}
        note={mailNote(mail)}
      />
      <Stat
        label="Targets clean"
        href="/blocklists"
        value={targets.total === 0 ? "–" : `${numberText(targets.clean)} / ${numberText(targets.total)}`}
        trend={targets.total === 0 ? null : listingTrend(listings)}
        note={targetsNote(targets)}
      />
      <Stat label="Lists running" href="/lists" value={numberText(lists.length)} note={<RunningNote lists={lists} />} />
    </Stats>
  );
};

/** The listings and delistings of a week; null without one. */
const listingTrend = ({ listed, delisted }: ChangeCounts): Trend | null => {
  if (listed + delisted === 0) return null;
  const parts = [
    listed === 0 ? null : countText(listed, "new listing"),
    delisted === 0 ? null : `${numberText(delisted)} delisted`,
  ];
  const text = `${parts.filter((part) => part !== null).join(", ")} since last week`;
  return { kind: listed > delisted ? "warn" : "ok", text };
};

const RunningNote = ({ lists }: { readonly lists: readonly RunningList[] }) => {
  const [first] = lists;
  if (first === undefined) return <>none is waiting</>;
  const { addresses, secondsLeft, title } = first;
  const done = addresses.total === 0 ? "" : `, ${percentText(addresses.finished / addresses.total)}`;
  return (
    <>
      <Link href={`/lists/${first.id}`}>{title}</Link>
      {done}
      {secondsLeft !== null && `, ${durationText(secondsLeft * 1_000)} left`}
    </>
  );
};

const mailNote = ({ domains, messages }: HomeFacts["mail"]) => {
  if (domains === 0) return <Link href="/dmarc/new">Monitor a domain</Link>;
  return messages === 0 ? "no reports in these days" : `of ${countText(messages, "message")} in your name`;
};

const targetsNote = ({ total, listed, unknown, pending, paused }: HomeFacts["targets"]) => {
  if (total === 0) return <Link href="/blocklists/new">Monitor an address</Link>;
  const parts = [
    [listed, "listed"],
    [unknown, "unknown"],
    [pending, "not checked yet"],
    [paused, "paused"],
  ] as const;
  const shown = parts.filter(([count]) => count > 0).map(([count, what]) => `${numberText(count)} ${what}`);
  return shown.length === 0 ? "none is listed" : shown.join(", ");
};

const VerdictsPanel = ({ days, fromDay, toDay }: HomeFacts) => {
  const byDay = new Map(days.groups.map((group) => [group.group, group]));
  const names = Array.from({ length: toDay - fromDay + 1 }, (_, at) => isoDay(fromDay + at));
  const valuesOf = (verdict: "deliverable" | "risky" | "undeliverable") =>
    names.map((day) => byDay.get(day)?.[verdict] ?? 0);
  return (
    <Panel title="Verifications" aside={<Link href="/usage?days=30">30 days</Link>}>
      {days.total.total === 0 ? (
        <p class="soft">Verdicts by day appear here as soon as an address or a list is verified.</p>
      ) : (
        <BarChart
          caption="Verifications a day by verdict, 30 days"
          days={names}
          series={[
            { title: "Deliverable", kind: "ok", values: valuesOf("deliverable") },
            { title: "Risky", kind: "warn", values: valuesOf("risky") },
            { title: "Undeliverable", kind: "bad", values: valuesOf("undeliverable") },
          ]}
        />
      )}
    </Panel>
  );
};

const VerifyPanel = ({ latest }: HomeFacts) => (
  <Panel title="Verify an address" isFlush>
    <div class="panel-body">
      <VerifyBox />
    </div>
    {latest.length > 0 && (
      <ul class="latest">
        {latest.map((row) => (
          <li key={row.id}>
            <Link href={`/verify/${row.id}`}>
              <Mono text={row.email} />
            </Link>
            <ResultBadge row={row} />
          </li>
        ))}
      </ul>
    )}
  </Panel>
);

/** Everything that the home page shows. */
interface HomeFacts extends OpenProblemsProps {
  /** The last 30 days by day; the last one is today (UTC). */
  readonly days: UsageReport;
  readonly fromDay: number;
  readonly toDay: number;
  readonly lists: readonly RunningList[];
  readonly targets: TargetFigures;
  readonly mail: MailInName;
  readonly latest: readonly VerificationRow[];
  readonly steps: readonly FirstStep[];
  /** Changes of the last seven days. */
  readonly listings: ChangeCounts;
  /** What happened since the beginning of yesterday (UTC). */
  readonly since: {
    readonly lists: number;
    readonly listings: ChangeCounts;
    readonly alerts: AlertChanges;
  };
}
