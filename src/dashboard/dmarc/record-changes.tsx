import { recordChangeView, type RecordChangeView } from "../../dmarc/insight/queries/record-history-routes.ts";
import { decodeCursor, encodeCursor } from "../../foundation/http/route-input.ts";
import { isId } from "../../foundation/base/secrets.ts";
import { Link } from "../components/inline.tsx";
import { Empty, Panel } from "../components/panel.tsx";
import { Pager } from "../components/pager.tsx";
import { Time } from "../components/figures.tsx";
import { page, type PageRoute } from "../page.ts";
import { DomainHead } from "./domain-head.tsx";
import type { DmarcPageUseCases } from "./use-cases.ts";
import { z } from "zod";

/** Changes beside the chart of mail. */
export const CHANGES_SHOWN = 5;
const AT_ONCE = 50;

const params = z.object({ id: z.string().refine(isId) });
const query = z.object({ cursor: z.string().transform(decodeCursor).refine(isId).optional() });

/** The changes of a domain's DNS records. */
export const recordChangePages = ({ domains, recordHistory }: DmarcPageUseCases): readonly PageRoute[] => [
  page({ path: "/dmarc/:id/record-history", params, query }, ({ viewer, params: { id }, query: { cursor } }) => {
    const { domain } = domains.find(viewer.caller, id);
    const rows = recordHistory.list(viewer.caller, id)({ before: cursor ?? null, limit: AT_ONCE + 1 });
    const shown = rows.slice(0, AT_ONCE);
    const last = rows.length > AT_ONCE ? shown.at(-1) : undefined;
    return {
      title: `DNS changes of ${domain}`,
      section: "dmarc",
      body: (
        <>
          <DomainHead
            domain={{ id, domain }}
            current="health"
            title={`DNS changes of ${domain}`}
            more={[["Health", `/dmarc/${id}/health`]]}
          />
          <Panel title="DMARC, SPF, DKIM, MX and MTA-STS records" isFlush>
            {shown.length === 0 ? (
              <Empty title="No record was seen yet">
                <p>The records are kept with the first check of the health.</p>
              </Empty>
            ) : (
              <Changes changes={shown.map(recordChangeView)} />
            )}
            <Pager next={last === undefined ? null : encodeCursor(last.id)} shown={shown.length} />
          </Panel>
        </>
      ),
    };
  }),
];

/** The newest changes of a domain's DNS records. */
export const RecordChanges = ({
  id,
  changes,
}: {
  readonly id: string;
  readonly changes: readonly RecordChangeView[];
}) => (
  <Panel title="DNS changes" aside={<Link href={`/dmarc/${id}/record-history`}>All records</Link>} isFlush>
    {changes.length === 0 ? (
      <p class="panel-body soft">No record has changed since the first check of the health.</p>
    ) : (
      <Changes changes={changes} />
    )}
  </Panel>
);

const KIND_WORDS: Readonly<Record<RecordChangeView["kind"], string>> = {
  dmarc: "DMARC",
  spf: "SPF",
  dkim: "DKIM",
  mx: "MX",
  mta_sts: "MTA-STS",
};

const changeWords = ({ before, records }: RecordChangeView): string => {
  if (before === null) return records.length === 0 ? "not published at the first check" : "first seen";
  if (before.length === 0) return "published";
  return records.length === 0 ? "removed" : "changed";
};

const Changes = ({ changes }: { readonly changes: readonly RecordChangeView[] }) => (
  <ul class="checklist">
    {changes.map((change) => (
      <li key={change.id}>
        <span class="soft small nowrap">
          <Time atMs={Date.parse(change.at)} style="day" />
        </span>
        <div class="finding">
          <b>
            {KIND_WORDS[change.kind]} {changeWords(change)}
          </b>{" "}
          <span class="mono small">{change.host}</span>
          <Texts label="Before" texts={change.before ?? []} />
          <Texts label="Now" texts={change.records} />
        </div>
      </li>
    ))}
  </ul>
);

const Texts = ({ label, texts }: { readonly label: string; readonly texts: readonly string[] }) =>
  texts.length === 0 ? null : (
    <p class="small">
      <span class="soft">{label}:</span> <span class="mono">{texts.join(" · ")}</span>
    </p>
  );
