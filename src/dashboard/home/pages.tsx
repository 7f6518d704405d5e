import type { Clock } from "../../foundation/base/clock.ts";
import { dayOfTime } from "../../foundation/base/days.ts";
import type { RunningList } from "../../bulk/job-queries.ts";
import type { TargetFigures } from "../../blocklist/target-table.ts";
import type { MailInName } from "../../dmarc/alerts/overview/dmarc-overview.ts";
import type { AccountUsage } from "../../accounts/usage/account-usage.ts";
import type { History } from "../../verify/history.ts";
import { page } from "../page.ts";
import type { Viewer } from "../visit.ts";
import type { AttentionBoard } from "./attention-board.ts";
import { HomeBody, type HomeFacts } from "./home-body.tsx";

export interface HomeUseCases {
  readonly clock: Clock;
  readonly board: AttentionBoard;
  readonly usage: AccountUsage;
  readonly history: History;
  readonly runningLists: (viewer: Viewer) => readonly RunningList[];
  readonly targets: (viewer: Viewer) => TargetFigures;
  readonly mailInName: (viewer: Viewer) => MailInName;
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
