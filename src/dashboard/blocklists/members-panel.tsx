import type { TargetRow } from "../../blocklist/store.ts";
import { stateOfTarget } from "../../blocklist/target-table.ts";
import { Empty } from "../components/empty.tsx";
import { Link } from "../components/link.tsx";
import { countText } from "../components/number.tsx";
import { Panel } from "../components/panel.tsx";
import { Table } from "../components/table.tsx";
import { Time } from "../components/time.tsx";
import { StateBadge } from "./words.tsx";

const ORDER = ["listed", "unknown", "pending", "clean", "paused"] as const;
const SHOWN_MAX = 256;

/** The addresses of a range, the worst first. */
export const MembersPanel = ({ members }: { readonly members: readonly TargetRow[] }) => {
  const sorted = members.toSorted(
    (a, b) =>
      ORDER.indexOf(stateOfTarget(a)) - ORDER.indexOf(stateOfTarget(b)) ||
      b.severityRank - a.severityRank ||
      a.id.localeCompare(b.id),
  );
  const counts = ORDER.map((state) => [state, members.filter((row) => stateOfTarget(row) === state).length] as const);
  const aside = counts.flatMap(([state, count]) => (count === 0 ? [] : [`${count} ${state}`])).join(" · ");
  return (
    <Panel title="Addresses" aside={aside} isFlush>
      {members.length === 0 ? (
        <Empty title="No address">
          <p>The addresses of this range are being removed.</p>
        </Empty>
      ) : (
        <Table
          caption="Addresses of the range, the worst first"
          columns={[
            { title: "State" },
            { title: "Address" },
            { title: "Listed on" },
            { title: "Checked", isWide: true },
          ]}
          rows={sorted.slice(0, SHOWN_MAX).map((row) => ({
            key: row.id,
            cells: [
              <StateBadge key="state" target={row} />,
              <Link key="name" href={`/blocklists/${row.id}`} class="mono">
                {row.value}
              </Link>,
              row.listedOn.join(", "),
              row.lastCheckedAtMs === null ? "never" : <Time atMs={row.lastCheckedAtMs} />,
            ],
          }))}
        />
      )}
      {sorted.length > SHOWN_MAX && (
        <p class="panel-body soft small">
          and {countText(sorted.length - SHOWN_MAX, "address", "addresses")} in a better state
        </p>
      )}
    </Panel>
  );
};
