import type { ReporterLine } from "../../dmarc/alerts/overview/dmarc-reading.ts";
import { reporterWords } from "../../dmarc/insight/queries/reporter.ts";
import { Button, PostForm } from "../components/form.tsx";
import { Link } from "../components/inline.tsx";
import { Day, numberText } from "../components/figures.tsx";
import { Panel } from "../components/panel.tsx";
import { Table } from "../components/table.tsx";
import { BackField, backPath } from "./source-classes.tsx";
import { z } from "zod";
import { formAction, type PageRoute } from "../page.ts";
import { redirectToPath } from "../visit.ts";
import type { DmarcPageUseCases } from "./use-cases.ts";

interface StandingProps {
  readonly standing: ReporterLine["standing"];
  readonly author: string | null;
}

/** Whether advice and alerts rely on a reporter, with the button that changes it. */
const Standing = ({ standing, author }: StandingProps) => {
  if (author === null || (standing !== "unknown" && standing !== "accepted")) return null;
  const isAccepted = standing === "accepted";
  return (
    <>
      <span class="second">
        {isAccepted ? "accepted by you" : "unknown reporter: anybody with a domain can be one"}
      </span>
      <PostForm
        action={`/dmarc/reporters/${encodeURIComponent(author)}/${isAccepted ? "withdraw" : "accept"}`}
        class="inline-form"
      >
        <BackField />
        <Button
          kind="quiet"
          title={
            isAccepted
              ? `Advice and alerts of all domains no longer rely on ${author}`
              : `Let the reports of ${author} count in advice and alerts of all domains`
          }
        >
          {isAccepted ? "Withdraw" : "Accept"}
          <span class="unseen"> {author}</span>
        </Button>
      </PostForm>
    </>
  );
};

/** Who reported, and when last. */
export const Reporters = ({ id, reporters }: { readonly id: string; readonly reporters: readonly ReporterLine[] }) => (
  <Panel title="Who reports" aside={<Link href={`/dmarc/${id}/reports`}>All reports</Link>} isFlush>
    {reporters.length === 0 ? (
      <p class="panel-body soft">No report in this range.</p>
    ) : (
      <Table
        caption="Reporters"
        columns={[{ title: "Reporter" }, { title: "Reports", align: "end" }, { title: "Messages", align: "end" }]}
        rows={reporters.map(({ reporter, standing, reports, messages, lastDay }) => {
          const name = reporterWords(reporter);
          return {
            key: `${name} ${lastDay} ${reports}`,
            cells: [
              <>
                {name}
                <span class="second">
                  last for <Day day={lastDay} />
                </span>
                {!reporter.trusted && <span class="second">not authenticated as the reporter's</span>}
                <Standing standing={standing} author={reporter.authenticated_as} />
              </>,
              numberText(reports),
              numberText(messages),
            ],
          };
        })}
      />
    )}
  </Panel>
);

const NAME_MAX = 255;
const params = z.object({ reporter: z.string().min(1).max(NAME_MAX) });
const form = z.object({ back: z.string().default("") });

/** Accept and withdraw a reporter, for all domains of the account. */
export const reporterActions = ({ acceptedReporters }: DmarcPageUseCases): readonly PageRoute[] => [
  formAction(
    { path: "/dmarc/reporters/:reporter/accept", params, form },
    async ({ viewer, params: { reporter }, form: { back } }) => {
      const { author } = await acceptedReporters.accept(viewer.caller, reporter);
      const ok = `Reports of ${author} count in advice and alerts of all your domains from now on.`;
      return redirectToPath(backPath(viewer, back, "/dmarc"), { ok });
    },
  ),
  formAction(
    { path: "/dmarc/reporters/:reporter/withdraw", params, form },
    async ({ viewer, params: { reporter }, form: { back } }) => {
      const author = await acceptedReporters.withdraw(viewer.caller, reporter);
      return redirectToPath(backPath(viewer, back, "/dmarc"), {
        ok: `${author} is not an accepted reporter any more.`,
      });
    },
  ),
];
