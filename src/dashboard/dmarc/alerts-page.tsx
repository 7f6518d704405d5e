import { z } from "zod";
import { isId } from "../../foundation/base/secrets.ts";
import { readAlertBody } from "../../dmarc/alerts/rules/alert-rule.ts";
import { ALERT_RULES, alertRuleName, findAlertRule } from "../../dmarc/alerts/rules/alert-rules.ts";
import { type DmarcAlertRow, isRuleOn } from "../../dmarc/records/domains/alert-store.ts";
import type { DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import { Empty, Panel } from "../components/panel.tsx";
import { Button, PostForm } from "../components/form.tsx";
import { ButtonLink, Badge, HelpText } from "../components/inline.tsx";
import { Pager, rowsParameter, firstRows } from "../components/pager.tsx";
import { Table } from "../components/table.tsx";
import { Time } from "../components/figures.tsx";
import { formAction, page, type PageRoute } from "../page.ts";
import { redirectToPath } from "../visit.ts";
import { backPath, BackField } from "./source-classes.tsx";
import { domainParameters, OpenAlerts } from "./domain-page.tsx";
import { DomainHead } from "./domain-head.tsx";
import type { DmarcPageUseCases } from "./use-cases.ts";

const query = z.object({ cursor: z.string().refine(isId).optional(), rows: rowsParameter });

/** The alerts of a domain: open ones, everything that was raised, and which rules are on. */
export const alertPages = (useCases: DmarcPageUseCases): readonly PageRoute[] => {
  const { domains, overview, alerts } = useCases;
  return [
    page(
      { path: "/dmarc/:id/alerts", params: domainParameters, query },
      ({ viewer, params: { id }, query: { cursor, rows } }) => {
        const row = domains.find(viewer.caller, id);
        const found = alerts.list(viewer.caller, id)({ before: cursor ?? null, limit: rows + 1 });
        const { rows: shown, next } = firstRows(found, rows, (alert) => alert.id);
        return {
          title: `Alerts of ${row.domain}`,
          section: "dmarc",
          body: (
            <>
              <DomainHead domain={row} current="alerts" title={`Alerts of ${row.domain}`} />
              <OpenAlerts id={id} alerts={overview.openAlertsOf(viewer.caller, row)} hasLink={false} />
              <Panel title="All alerts" isFlush>
                <AlertList alerts={shown} />
                <Pager next={next} shown={shown.length} rows={rows} />
              </Panel>
              <RuleSwitches row={row} />
            </>
          ),
        };
      },
    ),
    formAction(
      {
        path: "/dmarc/:id/alerts/rules",
        params: domainParameters,
        form: z.object({ rule: alertRuleName, turn: z.enum(["on", "off"]), back: z.string().default("") }),
      },
      async ({ viewer, params: { id }, form: { rule, turn, back } }) => {
        await domains.change(viewer.caller, id, { alerts: { [rule]: turn === "on" } });
        return redirectToPath(backPath(viewer, back, `/dmarc/${id}/alerts`), {
          ok: `Alerts "${wordsOf(rule)}" are ${turn} for this domain.`,
        });
      },
    ),
  ];
};

const wordsOf = (rule: string): string => findAlertRule(rule)?.words ?? rule;
const capitalized = (sentence: string): string => `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}`;

const AlertList = ({ alerts }: { readonly alerts: readonly DmarcAlertRow[] }) =>
  alerts.length === 0 ? (
    <Empty title="No alerts yet">
      <p>
        You are alerted when the record or the policy changes, a new sender or subdomain appears, much more mail fails
        than usual, somebody forges mail, or reports stop. During the first week we learn what is usual.
      </p>
    </Empty>
  ) : (
    <Table
      caption="Alerts"
      columns={[
        { title: "When" },
        { title: "Rule" },
        { title: "What happened", isText: true },
        { title: "Acknowledged" },
      ]}
      rows={alerts.map(({ id, atMs, rule, body, acknowledgedAtMs }) => ({
        key: id,
        cells: [
          <span class="nowrap">
            <Time atMs={atMs} style="full" />
          </span>,
          <span class="nowrap">{wordsOf(rule)}</span>,
          <HelpText text={capitalized(readAlertBody(body).summary)} />,
          acknowledgedAtMs === null ? <span class="soft">–</span> : <Time atMs={acknowledgedAtMs} />,
        ],
      }))}
    />
  );

const RuleSwitches = ({ row }: { readonly row: DomainRow }) => (
  <Panel
    title="What alerts"
    aside={<ButtonLink href={`/dmarc/${row.id}/settings`}>Recipients and thresholds</ButtonLink>}
    isFlush
  >
    <Table
      caption="Alert rules"
      columns={[
        { title: "Rule", isText: true },
        { title: "State" },
        { title: "Change", isTitleHidden: true, align: "end" },
      ]}
      rows={ALERT_RULES.map((rule) => {
        const { name, words, description } = rule;
        const isOn = isRuleOn(row, rule);
        return {
          key: name,
          cells: [
            <>
              {words}
              <span class="second">{description}</span>
            </>,
            <Badge kind={isOn ? "ok" : "unknown"} icon={isOn ? "bell" : "bell-off"}>
              {isOn ? "On" : "Off"}
            </Badge>,
            <PostForm action={`/dmarc/${row.id}/alerts/rules`}>
              <BackField />
              <input type="hidden" name="rule" value={name} />
              <input type="hidden" name="turn" value={isOn ? "off" : "on"} />
              <Button>
                Turn {isOn ? "off" : "on"}
                <span class="unseen"> {words}</span>
              </Button>
            </PostForm>,
          ],
        };
      })}
    />
  </Panel>
);
