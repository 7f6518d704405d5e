import type { ComponentChildren } from "preact";
import { assetPath } from "./assets.ts";
import { Icon, type IconName } from "./components/icon.tsx";
import { Link } from "./components/link.tsx";
import { Num } from "./components/number.tsx";
import { Button, PostForm } from "./components/form.tsx";
import { type Section, usePage, type View, type Viewer } from "./visit.ts";
import { type Theme, THEMES, themeCookie } from "./cookies.ts";
import { type Flash, isOwnPath, redirectToPath } from "./redirect.ts";
import { z } from "zod";
import { publicAction } from "./page.ts";

/** What the frame shows beside the page. */
export interface FrameFacts {
  /** Available credits. */
  readonly credits: number;
  /** What needs attention, by section. */
  readonly attention: Partial<Readonly<Record<Section, number>>>;
}

export interface FrameProps {
  readonly view: View;
  readonly viewer: Viewer | null;
  readonly facts: FrameFacts | null;
  readonly flash: Flash | null;
  /** What is wrong with the form of the page. */
  readonly message: string | null;
  readonly theme: Theme;
  /** The section of the manual about the page; null where the manual is turned off. */
  readonly help: string | null;
}

const SECTIONS: ReadonlyArray<readonly [section: Section, title: string, path: string, icon: IconName]> = [
  ["home", "Home", "/", "house"],
  ["verify", "Verify", "/verify", "search"],
  ["lists", "Lists", "/lists", "list"],
  ["dmarc", "DMARC", "/dmarc", "shield"],
  ["blocklists", "Blocklists", "/blocklists", "ban"],
  ["usage", "Usage", "/usage", "chart-column"],
  ["webhooks", "Webhooks", "/webhooks", "webhook"],
  ["settings", "Settings", "/settings", "settings"],
];

const HTMX_CONFIG = JSON.stringify({ includeIndicatorCSS: false });

/** The document around a page. */
export const Frame = (props: FrameProps) => {
  const { view, viewer, theme } = props;
  const { timeZone } = usePage();
  const isBare = view.isBare === true;
  const inside = viewer === null ? <Card {...props} /> : <Shell {...props} viewer={viewer} />;
  return (
    <html lang="en" data-theme={theme} data-zone={timeZone}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="robots" content="noindex" />
        <meta name="htmx-config" content={HTMX_CONFIG} />
        <title>{`${view.title} · Postwarden`}</title>
        <link rel="icon" type="image/svg+xml" href={assetPath("favicon.svg")} />
        <link rel="stylesheet" href={assetPath("style.css")} />
        {!isBare && (
          <>
            <script src={assetPath("htmx.js")} defer />
            <script src={assetPath("uplot.js")} defer />
            <script src={assetPath("app.js")} defer />
          </>
        )}
      </head>
      <body class={viewer?.mode === "test" ? "test" : undefined}>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        {isBare ? (
          <main id="main" class="bare" tabIndex={-1}>
            {view.body}
          </main>
        ) : (
          inside
        )}
      </body>
    </html>
  );
};

/** A page for visitors: nothing but the page. */
const Card = (props: FrameProps) => (
  <main id="main" class="card" tabIndex={-1}>
    <p class="brand">
      <Icon name="mail-check" /> Postwarden
    </p>
    <Notices {...props} />
    {props.view.body}
  </main>
);

const Shell = (props: FrameProps & { readonly viewer: Viewer }) => (
  <div class="shell">
    <header class="side">
      <div class="bar">
        <Link class="brand" href="/">
          <Icon name="mail-check" /> Postwarden
        </Link>
        {props.viewer.mode === "test" && <span class="stripe">Test data</span>}
        <details class="menu">
          <summary class="button">Menu</summary>
          <Navigation {...props} />
        </details>
      </div>
      <div class="wide">
        <Navigation {...props} />
      </div>
    </header>
    <main id="main" tabIndex={-1}>
      <Notices {...props} />
      {props.view.body}
    </main>
  </div>
);

/** What was done, or why not. */
const Notices = ({ flash, message }: FrameProps) => (
  <>
    {message !== null && <Notice kind="bad">{message}</Notice>}
    {flash !== null &&
      ("ok" in flash ? <Notice kind="ok">{flash.ok}</Notice> : <Notice kind="bad">{flash.bad}</Notice>)}
  </>
);

const Notice = ({ kind, children }: { readonly kind: "ok" | "bad"; readonly children: ComponentChildren }) => (
  <p class={`notice ${kind}`} role={kind === "bad" ? "alert" : "status"}>
    <Icon name={kind === "ok" ? "circle-check" : "circle-alert"} />
    <span>{children}</span>
  </p>
);

const Navigation = ({ view, viewer, facts, theme, help }: FrameProps & { readonly viewer: Viewer }) => {
  const { mayOpen } = usePage();
  return (
    <div class="nav">
      <nav aria-label="Sections">
        <ul>
          {SECTIONS.filter(([, , path]) => mayOpen(path)).map(([section, title, path, icon]) => {
            const count = facts?.attention[section] ?? 0;
            return (
              <li key={section}>
                <Link href={path} isCurrent={section === view.section}>
                  <Icon name={icon} />
                  <span>{title}</span>
                  {count > 0 && (
                    <span class="count">
                      {count > 99 ? "99+" : count}
                      <span class="unseen">{count === 1 ? " needs attention" : " need attention"}</span>
                    </span>
                  )}
                </Link>
              </li>
            );
          })}
          {help !== null && (
            <li>
              <a href={help}>
                <Icon name="circle-help" />
                <span>Help</span>
              </a>
            </li>
          )}
        </ul>
      </nav>
      <Who {...{ view, viewer, facts, theme }} />
    </div>
  );
};

/** Who is signed in, the mode and the theme. */
const Who = ({
  view,
  viewer,
  facts,
  theme,
}: Pick<FrameProps, "view" | "facts" | "theme"> & { readonly viewer: Viewer }) => (
  <div class="who">
    <ModeSwitch viewer={viewer} section={view.section} />
    <p>
      <Link href="/settings/profile" class="plain">
        {viewer.user.email}
      </Link>
    </p>
    <p class="soft small">
      {viewer.account.name}
      {facts !== null && (
        <>
          {" · "}
          <Num value={facts.credits} /> {facts.credits === 1 ? "credit" : "credits"}
        </>
      )}
    </p>
    <div class="who-acts">
      <ThemeForm theme={theme} />
      <PostForm action="/sign-out">
        <Button kind="quiet" icon="log-out">
          Sign out
        </Button>
      </PostForm>
    </div>
  </div>
);

/** The same section with live or test data; an object exists in one of them only. */
const ModeSwitch = ({ viewer, section }: { readonly viewer: Viewer; readonly section: Section | null }) => {
  const [, , path = "/"] = SECTIONS.find(([name]) => name === section) ?? [];
  return (
    <ul class="switch" aria-label="Data">
      <li>
        <a href={path} aria-current={viewer.mode === "live" ? "true" : undefined}>
          Live
        </a>
      </li>
      <li>
        <a href={path === "/" ? "/test" : `/test${path}`} aria-current={viewer.mode === "test" ? "true" : undefined}>
          Test
        </a>
      </li>
    </ul>
  );
};

const NEXT_THEME: Readonly<Record<Theme, readonly [next: Theme, icon: IconName, label: string]>> = {
  auto: ["dark", "moon", "Dark"],
  dark: ["light", "sun", "Light"],
  light: ["auto", "circle-help", "System"],
};

/** Goes through the colour schemes: the system's, dark, light. */
const ThemeForm = ({ theme }: { readonly theme: Theme }) => {
  const { url } = usePage();
  const [next, icon, label] = NEXT_THEME[theme];
  return (
    <PostForm action="/theme">
      <input type="hidden" name="theme" value={next} />
      <input type="hidden" name="back" value={url} />
      <Button kind="quiet" icon={icon} title={`Change the colours to: ${label.toLowerCase()}`}>
        {label}
      </Button>
    </PostForm>
  );
};

/** The choice of colours: kept by the browser, also without a session. */
export const PREFERENCES = [
  publicAction(
    { path: "/theme", form: z.object({ theme: z.enum(THEMES), back: z.string().refine(isOwnPath).catch("/") }) },
    ({ form }) => redirectToPath(form.back, undefined, [themeCookie(form.theme)]),
  ),
];
