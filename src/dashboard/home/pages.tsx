import type { AttentionItem } from "../../base/attention.ts";
import type { Clock } from "../../base/clock.ts";
import { dayOfTime } from "../../base/days.ts";
import type { RunningList } from "../../bulk/job-queries.ts";
import type { TargetFigures } from "../../blocklist/target-table.ts";
import type { MailInName } from "../../dmarc/overview/dmarc-overview.ts";
import type { AccountUsage, UsageReport } from "../../usage/account-usage.ts";
import type { History } from "../../verify/history.ts";
import type { VerificationRow } from "../../verify/store.ts";
import { type Viewer, page } from "../page.ts";
import type { AttentionBoard } from "./attention-board.ts";
import { HomeBody } from "./home-body.tsx";

export interface HomeUseCases {
  readonly clock: Clock;
  readonly board: AttentionBoard;
  readonly usage: AccountUsage;
  readonly history: History;
  readonly runningLists: (viewer: Viewer) => readonly RunningList[];
  readonly targets: (viewer: Viewer) => TargetFigures;
  readonly mailInName: (viewer: Viewer) => MailInName;
}

/** Everything that the home page shows. */
export interface HomeFacts {
  readonly attention: readonly AttentionItem[];
  /** The last 30 days by day; the last one is today (UTC). */
  readonly days: UsageReport;
  readonly fromDay: number;
  readonly toDay: number;
  readonly lists: readonly RunningList[];
  readonly targets: TargetFigures;
  readonly mail: MailInName;
  readonly latest: readonly VerificationRow[];
}

const DAYS = 30;
const LATEST = 6;

/** The home page: is anything wrong? */
export const createHomePages = (useCases: HomeUseCases) => [
  page({ path: "/" }, async ({ viewer }) => {
    const { clock, board, usage, history } = useCases;
    const toDay = dayOfTime(clock.nowMs());
    const fromDay = toDay - DAYS + 1;
    const latest = await history.page(viewer.caller, {}, { before: null, limit: LATEST });
    const facts: HomeFacts = {
      attention: board.items(viewer),
      days: await usage.report(viewer.caller, { fromDay, toDay }, "day"),
      ...{ fromDay, toDay, latest: latest.rows },
      lists: useCases.runningLists(viewer),
      targets: useCases.targets(viewer),
      mail: useCases.mailInName(viewer),
    };
    return { title: "Home", section: "home", body: <HomeBody {...facts} /> };
  }),
];
