import type { Balance, LedgerEntry } from "../../accounts/billing/store.ts";
import type { CreditForecast } from "../../accounts/usage/account-usage.ts";
import { Empty } from "../components/empty.tsx";
import { Link } from "../components/link.tsx";
import { countText, numberText } from "../components/number.tsx";
import { Panel } from "../components/panel.tsx";
import { Pager, Table } from "../components/table.tsx";
import { Time } from "../components/time.tsx";

/** What the page shows of credits; test keys cost nothing and have none. */
export interface CreditFacts {
  readonly balance: Balance;
  readonly forecast: CreditForecast;
  readonly grants: ReadonlyArray<LedgerEntry & { readonly id: number }>;
  readonly next: number | null;
  readonly isLater: boolean;
}

const YEARS_TEN_DAYS = 3_650;

/** How long the credits will last, in a sentence. */
export const forecastText = ({ balance, forecast: { creditsPerDay, days, daysLeft } }: CreditFacts): string => {
  if (balance.available === 0) return "Nothing can be verified until credits are granted.";
  if (daysLeft === null) return "How long they last is unknown: none was used in 30 days.";
  const pace = creditsPerDay < 10 ? creditsPerDay.toFixed(1) : numberText(Math.round(creditsPerDay));
  const mean = `at ${pace} a day, the mean of ${days === 1 ? "today" : `the last ${days} days`}`;
  if (daysLeft > YEARS_TEN_DAYS) return `More than ten years ${mean}.`;
  return daysLeft === 0 ? `Less than a day ${mean}.` : `About ${countText(daysLeft, "day")} ${mean}.`;
};

/** The credits that were granted, with their notes. */
export const Grants = ({ balance, grants, next, isLater }: CreditFacts) => (
  <Panel title="Credits in" aside={<Link href="/usage/credits.csv">CSV</Link>} isFlush>
    {balance.held > 0 && (
      <p class="panel-note">
        {countText(balance.held, "credit")} held for verifications that are not finished. What is not charged comes
        back.
      </p>
    )}
    {grants.length === 0 ? (
      <Empty title="No credits were granted">
        <p>
          The operator of this service grants credits: <code>postwarden credits grant</code>
        </p>
      </Empty>
    ) : (
      <Table
        caption="Credits granted, the newest first"
        columns={[{ title: "Granted" }, { title: "Credits", align: "end" }, { title: "Note" }]}
        rows={grants.map(({ id, atMs, available, note }) => ({
          key: id,
          cells: [
            <Time key="at" atMs={atMs} style="full" />,
            <span key="credits" class="num">
              +{numberText(available)}
            </span>,
            note ?? (
              <span key="none" class="soft">
                no note
              </span>
            ),
          ],
        }))}
      />
    )}
    <Pager next={next === null ? null : String(next)} isLater={isLater} />
  </Panel>
);
