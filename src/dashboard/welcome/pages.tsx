import { z } from "zod";
import type { Doctor } from "../../doctor/doctor.ts";
import { Button, PostForm } from "../components/form.tsx";
import { Icon } from "../components/icon.tsx";
import { ButtonLink, HelpText, Badge } from "../components/inline.tsx";
import { countText, Ring } from "../components/figures.tsx";
import { Live, PageHead, Panel } from "../components/panel.tsx";
import { type FirstStep, type FirstSteps, STEP_IDS } from "../first-steps.ts";
import { formAction, listOf, page } from "../page.ts";
import { type View, type Viewer, redirectTo } from "../visit.ts";
import { createReportMailPages, type ReportMailUseCases } from "./report-mail.tsx";

export interface WelcomeUseCases extends ReportMailUseCases {
  readonly doctor: Pick<Doctor, "start" | "isRunning">;
  readonly steps: FirstSteps;
}

const PATH = "/welcome";
const CHECK_EVERY_S = 2;

/** The first steps, each shown as done or to do. */
export const createWelcomePages = (useCases: WelcomeUseCases) => {
  const { doctor, steps } = useCases;
  return [
    page({ path: PATH }, ({ viewer }) => welcomeView(useCases, viewer)),
    formAction(
      { path: `${PATH}/hide`, form: z.object({ steps: listOf(z.enum(STEP_IDS)) }) },
      async ({ viewer, form }) => {
        await steps.hide(viewer, form.steps);
        return redirectTo(viewer, form.steps.length > 1 ? "/" : PATH, {
          ok: form.steps.length > 1 ? "The first steps are hidden. They stay at /welcome." : "Hidden.",
        });
      },
      { rerender: ({ viewer }) => welcomeView(useCases, viewer) },
    ),
    formAction({ path: `${PATH}/show` }, async ({ viewer }) => {
      await steps.hide(viewer, null);
      return redirectTo(viewer, PATH, { ok: "All steps are shown." });
    }),
    formAction({ path: `${PATH}/check` }, ({ viewer }) => {
      const isRunning = doctor.start();
      const refusal = { bad: "This machine was checked less than 30 seconds ago. Wait a moment." };
      return redirectTo(viewer, PATH, isRunning ? undefined : refusal);
    }),
    ...createReportMailPages(useCases),
  ];
};

const welcomeView = ({ steps, doctor }: WelcomeUseCases, viewer: Viewer): View => ({
  title: "First steps",
  section: "home",
  body: <WelcomePage viewer={viewer} steps={steps.of(viewer)} isChecking={doctor.isRunning} />,
});

interface PageProps {
  readonly viewer: Viewer;
  readonly steps: readonly FirstStep[];
  /** Whether the machine is being checked. */
  readonly isChecking: boolean;
}

const WelcomePage = ({ viewer: { mode, user }, steps, isChecking }: PageProps) => {
  const shown = steps.filter(({ isHidden }) => !isHidden);
  const hidden = steps.length - shown.length;
  const done = shown.filter(({ isDone }) => isDone).length;
  const isMachineShown = user.isOperator && shown.some(({ id }) => id === "machine");
  return (
    <>
      <PageHead
        title="First steps"
        meta={
          mode === "test"
            ? "In test mode, everything is free and nothing leaves this machine."
            : "Each step leads to its page. It is done when what it is for works."
        }
        actions={<Ring done={done} total={shown.length} />}
      />
      <Live id="steps" everyS={CHECK_EVERY_S} isOn={isChecking && isMachineShown}>
        <Panel
          title={done === shown.length ? "Everything is set up" : "What to set up"}
          aside={`${done} of ${countText(shown.length, "step")} done`}
          isFlush
        >
          <ol class="first-steps">
            {shown.map((step) => (
              <Step key={step.id} step={step} isChecking={isChecking && step.id === "machine"} />
            ))}
          </ol>
        </Panel>
      </Live>
      {hidden > 0 && (
        <PostForm action={`${PATH}/show`}>
          <Button kind="quiet" icon="eye">
            Show {countText(hidden, "hidden step")}
          </Button>
        </PostForm>
      )}
    </>
  );
};

const Step = ({ step, isChecking }: { readonly step: FirstStep; readonly isChecking: boolean }) => {
  const { id, title, text, action, isDone } = step;
  return (
    <li class={isDone ? "done" : undefined}>
      <Icon name={isDone ? "circle-check" : isChecking ? "refresh-cw" : "circle"} />
      <div>
        <h3>
          {title}{" "}
          {isDone ? (
            <Badge kind="ok">done</Badge>
          ) : (
            <Badge kind={isChecking ? "info" : "unknown"} icon={isChecking ? "clock" : "arrow-right"}>
              {isChecking ? "runs" : "to do"}
            </Badge>
          )}
        </h3>
        <p class="soft">
          <HelpText text={text} />
        </p>
      </div>
      <div class="actions">
        {id === "machine" && !isChecking && (
          <PostForm action={`${PATH}/check`}>
            <Button icon="refresh-cw">{action.path === PATH ? "Check now" : "Check again"}</Button>
          </PostForm>
        )}
        {action.path !== PATH && <ButtonLink href={action.path}>{isDone ? "Open" : action.text}</ButtonLink>}
        {!isDone && !isChecking && (
          <PostForm action={`${PATH}/hide`}>
            <Button kind="quiet" name="steps" value={id} title={`Hides "${title}"`}>
              Hide
            </Button>
          </PostForm>
        )}
      </div>
    </li>
  );
};
