import { z } from "zod";
import { isId } from "../../foundation/base/secrets.ts";
import { sendFile } from "../../foundation/http/response.ts";
import type { IngestionView } from "../../dmarc/reports/ingest/ingestion-schemas.ts";
import { OUTCOMES } from "../../dmarc/reports/ingest/ingestion-finding.ts";
import { INGESTION_COLUMNS, type IngestionQuery } from "../../dmarc/reports/ingest/ingestions.ts";
import { csvResponse } from "../../dmarc/insight/queries/domain-query.ts";
import { Button, Filters, PostForm, SelectField } from "../components/form.tsx";
import { ButtonLink, DownloadLink, Link } from "../components/inline.tsx";
import { countText } from "../components/figures.tsx";
import { Callout, PageHead, Panel, Live } from "../components/panel.tsx";
import { Pager, rowsParameter } from "../components/pager.tsx";
import { formAction, page, type PageRoute, uploadAction } from "../page.ts";
import { type View, type Viewer, redirectTo } from "../visit.ts";
import { IngestionFindings, IngestionTable, ReportUpload } from "./intake-panels.tsx";
import { OUTCOME_OPTIONS, VIA_OPTIONS } from "./report-words.ts";
import type { DmarcReportUseCases } from "./use-cases.ts";

const PATH = "/dmarc/intake";
/** Files of an upload that are shown on one page. */
const UPLOADED_ROWS = 200;

const query = z
  .object({
    outcome: z.enum(OUTCOMES),
    via: z.enum(["smtp", "http", "import", "imap"]),
    status: z.enum(["pending", "done"]),
    domain: z.string().refine(isId),
    /** When the files of one upload were received, in milliseconds since 1970. */
    at: z.coerce.number().int().nonnegative(),
    cursor: z.string().refine(isId),
  })
  .partial()
  .extend({ rows: rowsParameter });
type Query = z.output<typeof query>;

type UseCases = Pick<DmarcReportUseCases, "reader" | "uploads" | "ingestions">;

const listQueryOf = ({ outcome, via, status, domain, at }: Query): IngestionQuery => ({
  outcome,
  status,
  domainId: domain,
  via: at === undefined ? via : "http",
  ...(at === undefined ? {} : { receivedFromMs: at, receivedBeforeMs: at + 1 }),
});

const csvPath = ({ cursor: _, rows: __, ...given }: Query): string => {
  const filters = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [[name, `${value}`]]));
  const text = new URLSearchParams(filters);
  return `${PATH}.csv${text.size === 0 ? "" : `?${text}`}`;
};

/** All received reports for the account, and uploads. */
export const intakePages = (useCases: UseCases): readonly PageRoute[] => [
  page({ path: PATH, query }, ({ viewer, query: given }) => intakeView(useCases, viewer, given)),
  page({ path: `${PATH}.csv`, query }, ({ request, viewer: { caller }, query: given }) => {
    const batches = useCases.reader.rows(caller, listQueryOf(given));
    return csvResponse(request, "reports-received.csv", { columns: INGESTION_COLUMNS, batches });
  }),
  ...uploadPages(useCases),
  ...retryPages(useCases),
  ...ingestionPages(useCases),
];

const uploadPages = (useCases: UseCases): readonly PageRoute[] => [
  uploadAction(
    { path: PATH },
    async ({ request, viewer }) => {
      const rows = await useCases.uploads.upload(request, viewer.caller);
      const at = rows[0]?.receivedAtMs;
      return redirectTo(viewer, at === undefined ? PATH : `${PATH}?at=${at}`, uploadFlash(rows));
    },
    { rerender: ({ viewer }) => intakeView(useCases, viewer, query.parse({})) },
  ),
];

const OUTCOME_PHRASES = {
  stored: "stored",
  duplicate: "stored already",
  empty: "without anything to count",
  quarantined: "quarantined",
  rejected: "rejected",
} as const;

/** "12 files read: 10 stored, 1 rejected." */
const uploadFlash = (rows: ReadonlyArray<Pick<IngestionView, "outcome">>) => {
  const counts = OUTCOMES.flatMap((outcome) => {
    const count = rows.filter((row) => row.outcome === outcome).length;
    return count === 0 ? [] : [`${count} ${OUTCOME_PHRASES[outcome]}`];
  });
  const text = `${countText(rows.length, "file")} read: ${counts.join(", ")}.`;
  const isBad = rows.every(({ outcome }) => outcome === "rejected" || outcome === "quarantined");
  return isBad ? { bad: text } : { ok: text };
};

const retryPages = ({ ingestions }: UseCases): readonly PageRoute[] => [
  formAction({ path: `${PATH}/retry` }, async ({ viewer }) => {
    const retried = await ingestions.retryAll(viewer.caller);
    const text =
      retried === 0
        ? "There is nothing to retry whose bytes are still kept."
        : `${countText(retried, "mail or file", "mails and files")} will be read again.`;
    return redirectTo(viewer, PATH, { ok: text });
  }),

  formAction(
    {
      path: `${PATH}/:ingestion/retry`,
      params: z.object({ ingestion: z.string() }),
      form: z.object({ accept: z.literal("yes").optional() }),
    },
    async ({ viewer, params: { ingestion }, form }) => {
      const isAccepted = form.accept === "yes";
      await ingestions.retry(viewer.caller, ingestion, { isAccepted });
      const ok = isAccepted
        ? "Accepted: its reports are counted as if you had uploaded them."
        : "It is being read again.";
      return redirectTo(viewer, `${PATH}/${ingestion}`, { ok });
    },
  ),
];

const ingestionPages = ({ reader }: UseCases): readonly PageRoute[] => [
  page(
    { path: `${PATH}/:ingestion`, params: z.object({ ingestion: z.string() }) },
    ({ viewer, params: { ingestion } }) => {
      const found = reader.find(viewer.caller, ingestion);
      return {
        title: "Received reports",
        section: "dmarc",
        body: <IngestionFindings ingestion={found} />,
      };
    },
  ),

  page(
    { path: `${PATH}/:ingestion/raw`, params: z.object({ ingestion: z.string() }) },
    async ({ request, viewer, params: { ingestion } }) => sendFile(request, await reader.raw(viewer.caller, ingestion)),
  ),
];

const intakeView = async ({ reader }: UseCases, { caller }: Viewer, given: Query): Promise<View> => {
  const limit = given.at === undefined ? given.rows : UPLOADED_ROWS;
  const { ingestions, next } = await reader.page(caller, listQueryOf(given), { before: given.cursor ?? null, limit });
  const isUpload = given.at !== undefined;
  return {
    title: isUpload ? "Your upload" : "Received reports",
    section: "dmarc",
    body: (
      <>
        <PageHead
          title={isUpload ? "Your upload" : "Received reports"}
          crumbs={[["DMARC", "/dmarc"], ...(isUpload ? [["Received reports", PATH] as const] : [])]}
          meta={
            isUpload ? "what became of each file" : "by mail, from the mailbox, by upload and by import, of all domains"
          }
          actions={isUpload ? <ButtonLink href={PATH}>All received reports</ButtonLink> : <RetryAll />}
        />
        {isUpload && <UploadResult ingestions={ingestions} />}
        <Panel title={isUpload ? "Files" : "Mails and files"} aside="newest first" isFlush>
          {!isUpload && <IntakeFilters query={given} />}
          <Live id="intake" everyS={3} isOn={ingestions.some(({ status }) => status === "pending")}>
            <IngestionTable ingestions={ingestions} isFiltered={Object.keys(given).length > 1} />
          </Live>
          <Pager next={next} shown={ingestions.length} {...(isUpload ? {} : { rows: given.rows })}>
            <DownloadLink href={csvPath(given)}>CSV</DownloadLink>
          </Pager>
        </Panel>
        <ReportUpload />
      </>
    ),
  };
};

const RetryAll = () => (
  <PostForm action={`${PATH}/retry`}>
    <Button
      icon="refresh-cw"
      title="Reads everything again that was rejected or quarantined and whose bytes are still kept"
    >
      Retry all that failed
    </Button>
  </PostForm>
);

const UploadResult = ({ ingestions }: { readonly ingestions: readonly IngestionView[] }) => {
  const count = (outcome: IngestionView["outcome"]): number =>
    ingestions.filter((one) => one.outcome === outcome).length;
  const failed = count("rejected") + count("quarantined");
  const stored = count("stored");
  if (ingestions.length === 0) return null;
  if (failed === 0) {
    return (
      <Callout
        kind="ok"
        title={
          stored === 0
            ? "Nothing new: all of it was stored before, or has nothing to count"
            : `${countText(stored, "file was", "files were")} stored`
        }
      >
        <p>The figures of the domains include them now.</p>
      </Callout>
    );
  }
  return (
    <Callout
      kind={stored > 0 ? "warn" : "bad"}
      title={`${countText(failed, "file", "files")} of ${ingestions.length} could not be used`}
    >
      <p>The reasons are below. Their bytes are kept, so you can retry them after you have removed the cause.</p>
    </Callout>
  );
};

const IntakeFilters = ({ query: given }: { readonly query: Query }) => (
  <Filters action={PATH}>
    <SelectField name="outcome" label="Outcome" value={given.outcome ?? ""} options={OUTCOME_OPTIONS} />
    <SelectField name="via" label="Arrived by" value={given.via ?? ""} options={VIA_OPTIONS} />
    <SelectField
      name="status"
      label="State"
      value={given.status ?? ""}
      options={[
        ["", "Any"],
        ["pending", "Waiting to be read"],
        ["done", "Read"],
      ]}
    />
    {given.domain !== undefined && (
      <>
        <input type="hidden" name="domain" value={given.domain} />
        <p class="small">
          Only what is about one domain. <Link href={PATH}>Show all domains</Link>
        </p>
      </>
    )}
  </Filters>
);
