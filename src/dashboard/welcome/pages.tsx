import { z } from "zod";
import type { FirstSteps } from "../../accounts/store.ts";
import type { OwnKeys } from "../../accounts/keys.ts";
import type { Doctor } from "../../doctor/doctor.ts";
import type { UrlOfRequest } from "../../foundation/http/request-target.ts";
import { SCOPES } from "../../foundation/http/scopes.ts";
import { Button, PostForm } from "../components/form.tsx";
import { ButtonLink, HelpText, Icon, Badge } from "../components/inline.tsx";
import { countText } from "../components/figures.tsx";
import { PageHead, Panel } from "../components/panel.tsx";
import { ShownKey } from "../components/shown-key.tsx";
import { formAction, page } from "../page.ts";
import { type View, type Viewer, redirectTo } from "../visit.ts";
import type { Owner } from "../../foundation/base/secrets.ts";

export interface WelcomeUseCases {
  readonly keys: Pick<OwnKeys, "create">;
  readonly urlOf: UrlOfRequest;
  readonly doctor: Doctor;
  readonly findSteps: (owner: Owner) => FirstSteps;
}

const PATH = "/welcome";

/** The first steps, each shown as done or to do. */
export const createWelcomePages = ({ keys, urlOf, doctor, findSteps }: WelcomeUseCases) => {
  const view = (viewer: Viewer): View => ({
    title: "First steps",
    section: "home",
    body: <WelcomePage viewer={viewer} doctor={doctor} steps={stepsOf(findSteps(viewer.caller))} />,
  });
  return [
    page({ path: PATH }, ({ viewer }) => view(viewer)),
    formAction(
      { path: `${PATH}/keys`, form: z.object({ mode: z.enum(["live", "test"]) }) },
      ({ request, viewer, form: { mode } }) => {
        const requested = { name: `first ${mode} key`, mode, scopes: SCOPES, expiresAtMs: null };
        const issued = keys.create(viewer.account.id, requested, viewer.user.id);
        const body = (
          <ShownKey issued={issued} isNew baseUrl={urlOf(request)} next={{ path: PATH, text: "I have copied it" }} />
        );
        return { title: "Copy the key", section: "home", isShownOnce: true, body };
      },
      { rerender: ({ viewer }) => view(viewer) },
    ),
    formAction({ path: `${PATH}/check` }, async ({ viewer }) => {
      await doctor.run();
      return redirectTo(viewer, PATH);
    }),
  ];
};

interface PageProps {
  readonly viewer: Viewer;
  readonly doctor: Doctor;
  readonly steps: readonly Step[];
}

const WelcomePage = ({ viewer, doctor, steps }: PageProps) => {
  const { user, mode } = viewer;
  const done = steps.filter(({ isDone }) => isDone).length;
  return (
    <>
      <PageHead
        title="First steps"
        meta={`${done} of ${steps.length} done in ${mode} mode. In test mode, everything is free and nothing leaves this machine.`}
      />
      {user.isOperator && <Machine doctor={doctor} />}
      <Panel title="What to set up" isFlush>
        <ol class="first-steps">
          {steps.map((step) => (
            <li key={step.title} class={step.isDone ? "done" : undefined}>
              <Icon name={step.isDone ? "circle-check" : "circle-minus"} />
              <div>
                <h3>
                  {step.title} <Badge kind={step.isDone ? "ok" : "unknown"}>{step.isDone ? "done" : "to do"}</Badge>
                </h3>
                <p class="soft">{step.text}</p>
              </div>
              <div class="actions">
                {step.action === "keys" ? (
                  user.role === "owner" && <KeyButtons />
                ) : (
                  <ButtonLink href={step.action.path}>{step.isDone ? "Open" : step.action.text}</ButtonLink>
                )}
              </div>
            </li>
          ))}
        </ol>
      </Panel>
    </>
  );
};

const KeyButtons = () => (
  <PostForm action={`${PATH}/keys`} class="actions">
    <Button name="mode" value="test" icon="flask-conical">
      Create test key
    </Button>
    <Button name="mode" value="live" icon="key-round">
      Create live key
    </Button>
  </PostForm>
);

/** What the checks of the machine found, in a few lines. */
const Machine = ({ doctor }: { readonly doctor: Doctor }) => {
  const latest = doctor.latestFindings();
  const troubled = latest?.findings.filter(({ severity }) => severity !== "ok") ?? [];
  return (
    <Panel
      title="This machine"
      aside={
        <PostForm action={`${PATH}/check`}>
          <Button icon="refresh-cw">{latest === null ? "Check it now" : "Check again"}</Button>
        </PostForm>
      }
      isFlush
    >
      <ul class="findings">
        {latest === null && (
          <li>
            <Badge kind="unknown">not checked</Badge>
            <div>
              <h3>Can this machine verify addresses?</h3>
              <p>The check takes up to 25 seconds: outgoing port 25, DNS, reverse DNS, blocklists, disk and backups.</p>
            </div>
          </li>
        )}
        {latest !== null && troubled.length === 0 && (
          <li>
            <Badge kind="ok">ready</Badge>
            <div>
              <h3>Everything is in order</h3>
              <p>{countText(latest.findings.length, "check")} passed.</p>
            </div>
          </li>
        )}
        {troubled.map(({ title, severity, detail, remedy }, at) => (
          <li key={at}>
            <Badge kind={severity === "fail" ? "bad" : "warn"}>{severity === "fail" ? "failure" : "warning"}</Badge>
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
    </Panel>
  );
};

/** A step of the page of first steps. `action`: where it is done, or the buttons that make keys. */
interface Step {
  readonly title: string;
  readonly text: string;
  readonly isDone: boolean;
  readonly action: "keys" | { readonly text: string; readonly path: string };
}

/** The steps in their order. */
const stepsOf = ({ hasKey, hasVerified, hasList, hasDomain, hasTarget }: FirstSteps): readonly Step[] => [
  {
    title: "Create an API key",
    isDone: hasKey,
    action: "keys",
    text: "Programs use it. A test key returns fixed results for addresses such as deliverable@example.com.",
  },
  {
    title: "Verify an address",
    isDone: hasVerified,
    action: { text: "Verify one", path: "/verify" },
    text: "Your own, for a start: you know what the result should be.",
  },
  {
    title: "Verify a list",
    isDone: hasList,
    action: { text: "Choose a file", path: "/lists" },
    text: "A CSV or Excel file, or pasted addresses. You see the cost before it starts.",
  },
  {
    title: "Enroll a domain",
    isDone: hasDomain,
    action: { text: "Enroll one", path: "/dmarc" },
    text: "Receivers then report who sends in its name. The first report takes 24 to 48 hours.",
  },
  {
    title: "Watch an address on blocklists",
    isDone: hasTarget,
    action: { text: "Add one", path: "/blocklists" },
    text: "The addresses and domains that you send from. You are notified when one is listed and when it is delisted.",
  },
];
