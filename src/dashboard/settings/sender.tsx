import type { Doctor, DoctorAdvice } from "../../doctor/doctor.ts";
import { Callout, Empty, PageHead, Panel, Live } from "../components/panel.tsx";
import { Button, PostForm } from "../components/form.tsx";
import { HelpText, Badge, type Kind } from "../components/inline.tsx";
import { Time, countText } from "../components/figures.tsx";
import { formAction, page } from "../page.ts";
import { redirectTo } from "../visit.ts";

const PATH = "/settings/sender";
const KINDS: Readonly<Record<DoctorAdvice["severity"], Kind>> = { ok: "ok", warn: "warn", fail: "bad" };
const WORDS: Readonly<Record<DoctorAdvice["severity"], string>> = { ok: "ok", warn: "warning", fail: "failure" };

/** "Sending identity": what the checks of this machine found, for operators. */
export const createSenderPages = ({ doctor }: { readonly doctor: Doctor }) => [
  page({ path: PATH }, () => ({
    title: "Sending identity",
    section: "settings",
    body: <SenderPage doctor={doctor} />,
  })),
  formAction({ path: PATH }, ({ viewer }) => {
    // The page shows its end; a failure is in the log.
    const flash = doctor.start()
      ? { ok: "Checking this machine. This takes up to 25 seconds." }
      : { bad: "This machine was checked less than 30 seconds ago. Wait a moment." };
    return redirectTo(viewer, PATH, flash);
  }),
];

const RunForm = ({ label }: { readonly label: string }) => (
  <PostForm action={PATH}>
    <Button kind="main" icon="refresh-cw">
      {label}
    </Button>
  </PostForm>
);

const SenderPage = ({ doctor }: { readonly doctor: Doctor }) => {
  const latest = doctor.latestFindings();
  const isRunning = doctor.isRunning;
  return (
    <>
      <PageHead
        title="Sending identity"
        crumbs={[["Settings", "/settings"]]}
        meta={
          latest === null ? (
            "How mail hosts, resolvers and blocklists see this machine."
          ) : (
            <span>
              Checked <Time atMs={latest.atMs} />, and again every day
            </span>
          )
        }
      />
      <Live id="findings" everyS={3} isOn={isRunning}>
        {isRunning && <p role="status">Checking this machine…</p>}
        {latest === null ? !isRunning && <NotYet /> : <Findings findings={latest.findings} isRunning={isRunning} />}
      </Live>
    </>
  );
};

const NotYet = () => (
  <Panel title="Findings">
    <Empty title="Not checked since the service was started" action={<RunForm label="Check now" />}>
      <p>
        The check connects to a mail host on port 25, queries the DNS servers and blocklists, and looks at reverse DNS,
        the HELO name, disk, backups, report mail and alert mail. It sends no mail and takes up to 25 seconds.
      </p>
    </Empty>
  </Panel>
);

const conclusionOf = (failures: number, warnings: number): string => {
  if (failures > 0)
    return `${countText(failures, "failure")} to fix${warnings > 0 ? `, ${countText(warnings, "warning")}` : ""}`;
  return warnings > 0 ? `It works, with ${countText(warnings, "warning")}` : "Everything is in order";
};

const Findings = ({
  findings,
  isRunning,
}: {
  readonly findings: readonly DoctorAdvice[];
  readonly isRunning: boolean;
}) => {
  const count = (severity: DoctorAdvice["severity"]) => findings.filter((one) => one.severity === severity).length;
  const [failures, warnings] = [count("fail"), count("warn")];
  const kind: Kind = failures > 0 ? "bad" : warnings > 0 ? "warn" : "ok";
  const troubled = findings.filter(({ severity }) => severity !== "ok");
  const fine = findings.filter(({ severity }) => severity === "ok");
  return (
    <>
      <Callout
        kind={kind}
        label={WORDS[failures > 0 ? "fail" : warnings > 0 ? "warn" : "ok"]}
        title={conclusionOf(failures, warnings)}
        actions={!isRunning && <RunForm label="Check again" />}
      >
        <p>
          {failures > 0
            ? "A failure keeps a part of the service from working. Settings take effect after a restart."
            : "A mail host decides by these whether it talks to you. Settings take effect after a restart."}
        </p>
      </Callout>
      {troubled.length > 0 && (
        <Panel title="To do" isFlush>
          <FindingList findings={troubled} />
        </Panel>
      )}
      <Panel title="In order" aside={countText(fine.length, "check")} isFlush>
        <FindingList findings={fine} />
      </Panel>
    </>
  );
};

const FindingList = ({ findings }: { readonly findings: readonly DoctorAdvice[] }) => (
  <ul class="findings">
    {findings.map(({ title, severity, detail, remedy }, at) => (
      <li key={at}>
        <Badge kind={KINDS[severity]}>{WORDS[severity]}</Badge>
        <div>
          <h3>{title}</h3>
          <p>
            <HelpText text={detail} />
          </p>
          {remedy !== null && (
            <p class="remedy">
              <HelpText text={remedy} />
            </p>
          )}
        </div>
      </li>
    ))}
  </ul>
);
