import { z } from "zod";
import type { DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import { ENROLLED_AT_ONCE_MAX, tagsSchema } from "../../dmarc/records/domains/enrolments.ts";
import { CopyBlock, Copyable } from "../components/copy.tsx";
import { Button, Field, PostForm, TextAreaField } from "../components/form.tsx";
import { ButtonLink, Link } from "../components/inline.tsx";
import { countText } from "../components/figures.tsx";
import { Callout, Columns, PageHead, Panel } from "../components/panel.tsx";
import { Table } from "../components/table.tsx";
import { formAction, page, type PageRoute } from "../page.ts";
import { type View, type Viewer, redirectTo, usePage } from "../visit.ts";
import { nameInZone } from "./record-text.tsx";
import type { DmarcReportUseCases } from "./use-cases.ts";

const PATH = "/dmarc/new";
const SET_UP_PATH = "/welcome/report-mail";
const TEXT_CHARACTERS_MAX = 200_000;

type UseCases = Pick<DmarcReportUseCases, "domains">;

const form = z.object({
  domains: z.string().max(TEXT_CHARACTERS_MAX),
  tags: z
    .string()
    .default("")
    .transform((text) => text.split(/[\s,;]+/).filter((tag) => tag !== ""))
    .pipe(tagsSchema),
});

/** Enrols one or many domains, and shows what to publish for those that were enrolled together. */
export const enrolPages = ({ domains }: UseCases): readonly PageRoute[] => [
  page(
    { path: PATH, query: z.object({ since: z.coerce.number().int().nonnegative() }).partial() },
    ({ viewer, query: { since } }) => {
      const enrolled = since === undefined ? [] : enrolledSince(domains, viewer, since);
      return enrolled.length === 0 ? formView(domains, viewer) : recordsView(domains, enrolled);
    },
  ),

  formAction(
    { path: PATH, form },
    async ({ viewer, form: given }) => {
      const enrolled = await domains.enrolText(viewer.caller, given.domains, given.tags);
      const added = enrolled.filter(({ created }) => created).map(({ domain }) => domain);
      const [first] = added;
      const known = enrolled.length - added.length;
      if (first === undefined) {
        const [only] = enrolled;
        const isOne = enrolled.length === 1 && only !== undefined;
        const ok = isOne
          ? `${only.domain.domain} was enrolled already.`
          : "All of these domains were enrolled already.";
        return redirectTo(viewer, isOne ? `/dmarc/${only.domain.id}/record` : "/dmarc", { ok });
      }
      const also = known === 0 ? "" : ` ${countText(known, "domain was", "domains were")} enrolled already.`;
      if (added.length === 1) {
        return redirectTo(viewer, `/dmarc/${first.id}/record`, {
          ok: `${first.domain} is enrolled. Publish its record now.${also}`,
        });
      }
      const sinceMs = Math.min(...added.map(({ createdAtMs }) => createdAtMs));
      return redirectTo(viewer, `${PATH}?since=${sinceMs}`, {
        ok: `${countText(added.length, "domain is", "domains are")} enrolled.${also}`,
      });
    },
    { rerender: ({ viewer }) => formView(domains, viewer) },
  ),
];

const enrolledSince = (domains: UseCases["domains"], { caller }: Viewer, sinceMs: number): readonly DomainRow[] =>
  domains
    .list(caller, {}, { before: null, limit: ENROLLED_AT_ONCE_MAX })
    .filter(({ createdAtMs }) => createdAtMs >= sinceMs);

const formView = (domains: UseCases["domains"], viewer: Viewer): View => {
  const { reportHost, mailbox } = domains.destination(viewer.caller);
  return {
    title: "Enroll domains",
    section: "dmarc",
    body: (
      <>
        <PageHead title="Enroll domains" crumbs={[["DMARC", "/dmarc"]]} />
        {reportHost === null ? (
          <NoReportHost />
        ) : (
          <Columns side={<WhatHappens destination={mailbox} reportHost={reportHost} />}>
            <Panel title="Domains to monitor">
              <PostForm action={PATH} class="form">
                <TextAreaField
                  name="domains"
                  label="Domains"
                  rows={8}
                  isMono
                  isRequired
                  placeholder={
                    viewer.mode === "test" ? "shop.example\nnews.shop.example" : "acme-shop.com\nacme-news.com"
                  }
                  hint={`One or many, up to ${ENROLLED_AT_ONCE_MAX}, on lines of their own or separated by commas. Subdomains are covered by the record of their domain: enroll them only if they have one of their own.`}
                />
                <Field
                  name="tags"
                  label="Tags"
                  hint="Groups of domains, such as one for each client: up to ten words. Only new domains get them."
                />
                <div class="actions">
                  <Button kind="main" icon="plus">
                    Enroll
                  </Button>
                </div>
              </PostForm>
            </Panel>
          </Columns>
        )}
      </>
    ),
  };
};

const NoReportHost = () => {
  const isOperator = usePage().mayOpen(SET_UP_PATH);
  return (
    <Callout
      kind="warn"
      label="Not set up"
      title="This service cannot receive reports yet"
      actions={
        <>
          {isOperator && (
            <ButtonLink href={SET_UP_PATH} kind="main">
              Set up report mail
            </ButtonLink>
          )}
          <ButtonLink href="/dmarc/intake">Upload reports</ButtonLink>
        </>
      }
    >
      <p>
        {isOperator
          ? "Publish two DNS records and set POSTWARDEN_REPORT_HOST, or let it fetch a mailbox (POSTWARDEN_IMAP_URL and POSTWARDEN_IMAP_ADDRESS). Domains can be enrolled after that."
          : "Ask the operator of this service to set up report mail. Domains can be enrolled after that."}
      </p>
    </Callout>
  );
};

const WhatHappens = ({
  destination,
  reportHost,
}: {
  readonly destination: string | null;
  readonly reportHost: string;
}) => (
  <Panel title="What happens next">
    <ol class="numbered">
      <li>
        <b>You get a record to publish.</b> A record that exists is kept as it is: only your reporting address is added.
      </li>
      <li>
        <b>You publish it at your DNS provider</b> and click “check now”. Nothing changes for your mail: the policy
        stays as it is, or begins with p=none.
      </li>
      <li>
        <b>Reports arrive after 24 to 48 hours.</b>{" "}
        {destination === null ? (
          <>
            Each domain has a reporting address of its own at <span class="mono">{reportHost}</span>.
          </>
        ) : (
          <>
            All of them go to the mailbox <span class="mono">{destination}</span>, and are sorted by the domain that
            they are about.
          </>
        )}
      </li>
      <li>
        <b>You see who sends in your name</b>, and the advice leads you to p=reject without losing mail.
      </li>
    </ol>
  </Panel>
);

/** A line of a zone file (RFC 1035 §5.1). */
const zoneLine = (host: string, strings: readonly string[]): string =>
  `${host}. 3600 IN TXT ${strings.map((text) => `"${text.replaceAll(/["\\]/g, "\\$&")}"`).join(" ")}`;

const recordsView = (domains: UseCases["domains"], enrolled: readonly DomainRow[]): View => {
  const rows = enrolled.map((domain) => ({ domain, ...domains.publication(domain) }));
  const lines = rows.flatMap(({ host, advised }) =>
    advised === null || advised.action === "conflict" || advised.action === "none"
      ? []
      : [zoneLine(host, advised.strings)],
  );
  return {
    title: "What to publish",
    section: "dmarc",
    body: (
      <>
        <PageHead
          title={`Publish ${countText(enrolled.length, "record")}`}
          crumbs={[["DMARC", "/dmarc"]]}
          actions={<ButtonLink href={PATH}>Enroll more</ButtonLink>}
        />
        <Panel title="One record for each domain" aside="Replace an existing record by the value shown" isFlush>
          <Table
            caption="Records to publish"
            columns={[
              { title: "Domain" },
              { title: "Name", isMono: true },
              { title: "Value of the TXT record", isMono: true },
            ]}
            rows={rows.map(({ domain, host, advised }) => ({
              key: domain.id,
              cells: [
                <Link href={`/dmarc/${domain.id}/record`}>{domain.domain}</Link>,
                <Copyable text={nameInZone(host, domain.domain).name} />,
                advised === null || advised.value === "" ? (
                  <span class="soft">
                    {advised?.message ?? "The DNS is being checked: see the page of the domain."}
                  </span>
                ) : advised.action === "none" ? (
                  <span class="soft">Published already.</span>
                ) : (
                  <Copyable text={advised.value} />
                ),
              ],
            }))}
          />
        </Panel>
        {lines.length > 0 && (
          <Panel title="As lines of a zone file">
            <CopyBlock text={lines.join("\n")} label="Lines of a zone file" />
          </Panel>
        )}
      </>
    ),
  };
};
