import { z } from "zod";
import type { DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import { evidenceOfView, HOSTING_MODES, type HostingView } from "../../dmarc/insight/sts/hosting-routes.ts";
import { CopyBlock } from "../components/copy.tsx";
import { Time } from "../components/figures.tsx";
import { Button, CheckField, PostForm } from "../components/form.tsx";
import { Badge, type Kind } from "../components/inline.tsx";
import { Panel, Row, Rows } from "../components/panel.tsx";
import { flag, formAction, type PageRoute } from "../page.ts";
import { redirectTo, usePage } from "../visit.ts";
import type { DmarcReportUseCases } from "./use-cases.ts";

const GUIDE = "/docs/mta-sts";

const MODES: Readonly<
  Record<HostingView["mode"], { readonly kind: Kind; readonly word: string; readonly done: string }>
> = {
  off: { kind: "unknown", word: "Off", done: "The policy is not served any more." },
  testing: { kind: "info", word: "Testing", done: "The policy is served with mode: testing. Publish the records." },
  enforce: { kind: "ok", word: "Enforced", done: "The policy is served with mode: enforce. Publish its new id." },
  none: { kind: "warn", word: "Withdrawn", done: "The policy is withdrawn. Publish its new id." },
};

const PROBLEMS: Readonly<Record<NonNullable<HostingView["problem"]>, string>> = {
  dns_failure: "The DNS did not respond to the last query for the MX records. The policy stays as it is.",
  no_mx: "The domain has no MX record at present. The policy stays as it is.",
  unusable_mx: "A policy cannot name the present MX records. The policy stays as it is.",
};

const RECORD_STATES: Readonly<
  Record<NonNullable<HostingView["record_state"]>, readonly [kind: Kind, word: string, meaning: string]>
> = {
  current: ["ok", "Published", ""],
  differs: ["bad", "Another id", "The DNS has another id, so senders keep an old policy."],
  missing: ["warn", "Not published", "Senders do not look for the policy."],
  unknown: ["unknown", "Not known", "The DNS has not responded yet."],
};

/** The MTA-STS policy that this service serves for a domain, and what to publish. */
export const MtaStsPanel = ({ domain, view }: { readonly domain: DomainRow; readonly view: HostingView }) => {
  const { kind, word } = MODES[view.mode];
  return (
    <Panel title="MTA-STS policy" id="mta-sts" aside={<Badge kind={kind}>{word}</Badge>}>
      {view.mode === "off" ? <Offer domain={domain} /> : <Hosted domain={domain} view={view} />}
    </Panel>
  );
};

const GuideLink = ({ children }: { readonly children: string }) => {
  const { hasManual } = usePage();
  return hasManual ? (
    <a href={GUIDE}>{children}</a>
  ) : (
    <>
      {children}: <code>postwarden help mta-sts</code>
    </>
  );
};

const Offer = ({ domain }: { readonly domain: DomainRow }) => (
  <>
    <p>
      With MTA-STS, senders deliver mail to {domain.domain} only over TLS to your own mail hosts. This service can serve
      the policy, with the MX hosts that the DNS has; you publish two records once.
    </p>
    <PostForm action={actionOf(domain)}>
      <Button name="mode" value="testing">
        Serve the policy in testing mode
      </Button>
    </PostForm>
    <p class="soft small">
      <GuideLink>How it works, and a proxy with automatic certificates</GuideLink>
    </p>
  </>
);

const actionOf = ({ id }: Pick<DomainRow, "id">) => `/dmarc/${id}/mta-sts`;

const Hosted = ({ domain, view }: { readonly domain: DomainRow; readonly view: HostingView }) => (
  <>
    {view.problem !== null && (
      <p>
        <Badge kind="warn">Warning</Badge> {PROBLEMS[view.problem]}
      </p>
    )}
    <Records view={view} />
    <p class="label">The policy that is served</p>
    <CopyBlock text={(view.policy ?? "").trim().replaceAll("\r", "")} label="MTA-STS policy" />
    <Rows>
      <Row label="Last changed">{view.policy_since !== null && <Time atMs={Date.parse(view.policy_since)} />}</Row>
      <Row label="MX records last seen">{view.checked_at !== null && <Time atMs={Date.parse(view.checked_at)} />}</Row>
    </Rows>
    <NextMode domain={domain} view={view} />
    <p class="soft small">
      <GuideLink>How it works, and a proxy with automatic certificates</GuideLink>
    </p>
  </>
);

const Records = ({ view: { dns_records, record_state } }: { readonly view: HostingView }) => {
  const [kind, word, meaning] = RECORD_STATES[record_state ?? "unknown"];
  return (
    <>
      {dns_records.map(({ host, type, value, purpose }) => (
        <div key={host} class="publish">
          <p class="label">
            {type} at <span class="mono">{host}</span>
          </p>
          {type === "TXT" && (
            <p>
              <Badge kind={kind}>{word}</Badge> {meaning}
            </p>
          )}
          {value === null ? (
            <p>The host name of this service (the operator sets it with POSTWARDEN_BASE_URL), or its addresses.</p>
          ) : (
            <CopyBlock text={value} label={`${type} record of ${host}`} />
          )}
          <p class="soft small">{purpose}</p>
        </div>
      ))}
    </>
  );
};

const NextMode = ({ domain, view }: { readonly domain: DomainRow; readonly view: HostingView }) => {
  const { mode, serve_until, tls_reports } = view;
  return (
    <>
      {mode === "testing" && <p>{evidenceOfView(view)}</p>}
      {mode === "testing" && !tls_reports.enforceable && (
        <p class="soft">
          Enforce the policy after 14 days with sessions under the policy and without failed ones. TLS reports must come
          to your reporting address for that.
        </p>
      )}
      {serve_until !== null && (
        <p>
          Senders may hold the enforced policy until <Time atMs={Date.parse(serve_until)} style="full" />. Keep the
          records and the policy until then.
        </p>
      )}
      <PostForm action={actionOf(domain)} class="form">
        {mode === "testing" && !tls_reports.enforceable && (
          <CheckField name="early" label="Enforce although that is not shown yet" isChecked={false} />
        )}
        <div class="actions">
          {mode !== "enforce" && mode !== "none" && (
            <Button name="mode" value="enforce" kind={tls_reports.enforceable ? "main" : "plain"}>
              Enforce
            </Button>
          )}
          {mode !== "testing" && (
            <Button name="mode" value="testing">
              Back to testing
            </Button>
          )}
          {mode !== "none" && (
            <Button name="mode" value="none">
              Withdraw
            </Button>
          )}
          {mode !== "enforce" && serve_until === null && (
            <Button name="mode" value="off" kind="danger">
              Stop serving it
            </Button>
          )}
        </div>
      </PostForm>
    </>
  );
};

/** The form that sets the mode of the policy. */
export const mtaStsActions = ({ hosting }: Pick<DmarcReportUseCases, "hosting">): readonly PageRoute[] => [
  formAction(
    {
      path: "/dmarc/:id/mta-sts",
      params: z.object({ id: z.string() }),
      form: z.object({ mode: z.enum(HOSTING_MODES), early: flag }),
    },
    async ({ viewer, params: { id }, form }) => {
      const back = `/dmarc/${id}/record`;
      const problem = await hosting.trySet(viewer.caller, id, form);
      return redirectTo(viewer, back, problem === null ? { ok: MODES[form.mode].done } : { bad: problem });
    },
  ),
];
