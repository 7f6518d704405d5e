import type { Runtime } from "../foundation/db/runtime.ts";
import type { Advisor } from "../dmarc/insight/advice/advisor.ts";
import type { DmarcAlertStore } from "../dmarc/records/domains/alert-store.ts";
import type { DomainStore } from "../dmarc/records/domains/domain-store.ts";
import { DmarcOverview } from "../dmarc/alerts/overview/dmarc-overview.ts";
import { DomainOverviewStore } from "../dmarc/alerts/overview/domain-overview-store.ts";
import { OpenAlertStore } from "../dmarc/alerts/overview/open-alert-store.ts";
import { OverviewJob } from "../dmarc/alerts/overview/overview-job.ts";
import type { RollupStore } from "../dmarc/insight/sources/rollup-store.ts";

export interface DmarcOverviewParts {
  readonly domains: DomainStore;
  readonly raised: DmarcAlertStore;
  readonly rollups: RollupStore;
  readonly advise: Advisor;
}

/** What the dashboard shows across domains, and the job that sums them up. */
export const composeDmarcOverview = (
  runtime: Pick<Runtime, "db" | "clock" | "log">,
  { domains, raised, rollups, advise }: DmarcOverviewParts,
) => {
  const store = new DomainOverviewStore(runtime.db);
  const job = new OverviewJob(runtime, { store, rollups, domains, advise });
  const alerts = new OpenAlertStore(runtime.db);
  return {
    overview: new DmarcOverview(runtime, { overviews: store, alerts, raised, domains }),
    sumUpDomains: () => job.run(),
    stop: (): void => job.stop(),
  };
};
