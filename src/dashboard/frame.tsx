import type { ComponentChildren } from "preact";
import { Icon, type IconName, ICONS, ICONS_NAME } from "./components/icon.tsx";
import { Link } from "./components/inline.tsx";
import { Num } from "./components/figures.tsx";
import { WithSettingsNav } from "./components/settings-nav.tsx";
import { Button, PostForm } from "./components/form.tsx";
import {
  type Section,
  type SectionCount,
  usePage,
  type View,
  type Viewer,
  type Theme,
  THEMES,
  themeCookie,
  type Flash,
  isOwnPath,
  redirectToPath,
} from "./visit.ts";
import { z } from "zod";
import { publicAction } from "./page.ts";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import htmxScript from "htmx.org/dist/htmx.min.js" with { type: "text" };
import uplotScript from "uplot/dist/uPlot.iife.min.js" with { type: "text" };
import uplotStyle from "uplot/dist/uPlot.min.css" with { type: "text" };
import { takesGzip } from "../foundation/http/response.ts";
import appScript from "./assets/app.js" with { type: "text" };
import favicon from "./assets/favicon.svg" with { type: "text" };
import manualScript from "./assets/manual.js" with { type: "text" };
import manualStyle from "./assets/manual.css" with { type: "text" };
import manualIndex from "./assets/manual-index.txt" with { type: "text" };
import shareImage from "./assets/share.png" with { type: "file" };
import style from "./assets/style.css" with { type: "text" };
import { hashedPath, type Logo } from "./logo.ts";

interface Asset {
  readonly content: string | Uint8Array<ArrayBuffer>;
  readonly type: string;
}

/** Everything that pages load, those of the manual too. It is all in the executable. */
const ASSETS: Readonly<Record<string, Asset>> = {
  "style.css": { content: `${uplotStyle}\n${style}`, type: "text/css" },
  "htmx.js": { content: htmxScript, type: "text/javascript" },
  "uplot.js": { content: uplotScript, type: "text/javascript" },
  "app.js": { content: appScript, type: "text/javascript" },
  "manual.css": { content: manualStyle, type: "text/css" },
  "manual.js": { content: manualScript, type: "text/javascript" },
  "manual-index.json": { content: manualIndex, type: "application/json" },
  [ICONS_NAME]: { content: ICONS, type: "image/svg+xml" },
  "favicon.svg": { content: favicon, type: "image/svg+xml" },
  "share.png": { content: new Uint8Array(readFileSync(shareImage)), type: "image/png" },
};

export type AssetName =
  | "style.css"
  | "htmx.js"
  | "uplot.js"
  | "app.js"
  | "manual.css"
  | "manual.js"
  | "manual-index.json"
  | "favicon.svg"
  | "share.png";

const PATHS: ReadonlyMap<string, string> = new Map(
  Object.entries(ASSETS).map(([name, { content }]) => [name, hashedPath(name, content)]),
);

export const assetPath = (name: AssetName): string => PATHS.get(name) ?? "";

const HEADERS = { "cache-control": "public, max-age=31536000, immutable", "x-content-type-options": "nosniff" };

const zip = promisify(gzip);
const zipped = new Map<string, Promise<Buffer<ArrayBuffer>>>();

/** The asset of a path; null for another path, also for the name of an earlier version. */
export const findAsset = async (request: Request, path: string): Promise<Response | null> => {
  const [name] = [...PATHS].find(([, known]) => known === path) ?? [];
  const asset = name === undefined ? undefined : ASSETS[name];
  if (asset === undefined) return null;
  const { content, type } = asset;
  if (typeof content !== "string") return new Response(content, { headers: { ...HEADERS, "content-type": type } });
  const headers = { ...HEADERS, "content-type": `${type}; charset=utf-8`, vary: "accept-encoding" };
  if (!takesGzip(request)) return new Response(content, { headers });
  const compressed = zipped.get(path) ?? zip(content);
  zipped.set(path, compressed);
  return new Response(await compressed, { headers: { ...headers, "content-encoding": "gzip" } });
};

/** What the frame shows beside the page. */
export interface FrameFacts {
  /** Available credits. */
  readonly credits: number;
  /** What needs attention, by section. */
  readonly attention: Partial<Readonly<Record<Section, SectionCount>>>;
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
  /** In place of the mark. */
  readonly logo: Logo | null;
  /** The URL of the picture that messengers show beside a link; null where the service has a logo of its own. */
  readonly shareImage: string | null;
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

/** After filters have changed the URL, going back loads the page of that URL. */
const HTMX_CONFIG = JSON.stringify({ includeIndicatorCSS: false, history: "reload" });

/** The document around a page. */
export const Frame = (props: FrameProps) => {
  const { view, viewer, theme, logo } = props;
  const { timeZone, brandName } = usePage();
  const title = `${view.title} · ${brandName}`;
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
        <title>{title}</title>
        {viewer === null && <ShareTags title={title} image={props.shareImage} />}
        <link rel="icon" type={logo?.type ?? MARK.type} href={logo?.path ?? MARK.path} />
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

const MARK = { type: "image/svg+xml", path: assetPath("favicon.svg") };

/** What a messenger shows of a link: pages that need no sign-in. */
const ShareTags = ({ title, image }: { readonly title: string; readonly image: string | null }) => (
  <>
    <meta property="og:title" content={title} />
    <meta property="og:type" content="website" />
    {image !== null && <meta property="og:image" content={image} />}
  </>
);

/** The logo, which usually contains the name; otherwise the mark and the name. */
const BrandName = ({ logo }: Pick<FrameProps, "logo">) => {
  const { brandName } = usePage();
  if (logo !== null) return <img class="logo" src={logo.path} alt={brandName} />;
  return (
    <>
      <img class="mark" src={MARK.path} alt="" width="24" height="24" /> {brandName}
    </>
  );
};

/** A page for visitors: nothing but the page. */
const Card = (props: FrameProps) => (
  <main id="main" class="card" tabIndex={-1}>
    <p class="brand">
      <BrandName logo={props.logo} />
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
          <BrandName logo={props.logo} />
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
      {props.view.section === "settings" ? <WithSettingsNav>{props.view.body}</WithSettingsNav> : props.view.body}
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
  const { mayOpen, href } = usePage();
  return (
    <div class="nav">
      {mayOpen("/search") && (
        <a href={href("/search")} class="find" data-search>
          <Icon name="search" /> <span>Search</span> <kbd>Ctrl K</kbd>
        </a>
      )}
      <nav aria-label="Sections">
        <ul>
          {SECTIONS.filter(([, , path]) => mayOpen(path)).map(([section, title, path, icon]) => {
            const { count = 0, isUrgent = false } = facts?.attention[section] ?? {};
            return (
              <li key={section}>
                <Link href={path} isCurrent={section === view.section}>
                  <Icon name={icon} />
                  <span>{title}</span>
                  {count > 0 && (
                    <span class={isUrgent ? "count urgent" : "count"}>
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
  const { mayOpen } = usePage();
  const [, , path = "/"] = SECTIONS.find(([name, , page]) => name === section && mayOpen(page)) ?? [];
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
