import { hashedPath } from "../logo.ts";
import arrowRightSvg from "lucide-static/icons/arrow-right.svg" with { type: "text" };
import banSvg from "lucide-static/icons/ban.svg" with { type: "text" };
import bellOffSvg from "lucide-static/icons/bell-off.svg" with { type: "text" };
import bellSvg from "lucide-static/icons/bell.svg" with { type: "text" };
import chartColumnSvg from "lucide-static/icons/chart-column.svg" with { type: "text" };
import checkSvg from "lucide-static/icons/check.svg" with { type: "text" };
import chevronRightSvg from "lucide-static/icons/chevron-right.svg" with { type: "text" };
import circleAlertSvg from "lucide-static/icons/circle-alert.svg" with { type: "text" };
import circleCheckSvg from "lucide-static/icons/circle-check.svg" with { type: "text" };
import circleHelpSvg from "lucide-static/icons/circle-help.svg" with { type: "text" };
import circleMinusSvg from "lucide-static/icons/circle-minus.svg" with { type: "text" };
import circleXSvg from "lucide-static/icons/circle-x.svg" with { type: "text" };
import circleSvg from "lucide-static/icons/circle.svg" with { type: "text" };
import clockSvg from "lucide-static/icons/clock.svg" with { type: "text" };
import copySvg from "lucide-static/icons/copy.svg" with { type: "text" };
import downloadSvg from "lucide-static/icons/download.svg" with { type: "text" };
import ellipsisSvg from "lucide-static/icons/ellipsis.svg" with { type: "text" };
import externalLinkSvg from "lucide-static/icons/external-link.svg" with { type: "text" };
import eyeSvg from "lucide-static/icons/eye.svg" with { type: "text" };
import fileTextSvg from "lucide-static/icons/file-text.svg" with { type: "text" };
import flaskConicalSvg from "lucide-static/icons/flask-conical.svg" with { type: "text" };
import houseSvg from "lucide-static/icons/house.svg" with { type: "text" };
import infoSvg from "lucide-static/icons/info.svg" with { type: "text" };
import keyRoundSvg from "lucide-static/icons/key-round.svg" with { type: "text" };
import listChecksSvg from "lucide-static/icons/list-checks.svg" with { type: "text" };
import listSvg from "lucide-static/icons/list.svg" with { type: "text" };
import logOutSvg from "lucide-static/icons/log-out.svg" with { type: "text" };
import mailCheckSvg from "lucide-static/icons/mail-check.svg" with { type: "text" };
import mailSvg from "lucide-static/icons/mail.svg" with { type: "text" };
import menuSvg from "lucide-static/icons/menu.svg" with { type: "text" };
import minusSvg from "lucide-static/icons/minus.svg" with { type: "text" };
import moonSvg from "lucide-static/icons/moon.svg" with { type: "text" };
import pauseSvg from "lucide-static/icons/pause.svg" with { type: "text" };
import pencilSvg from "lucide-static/icons/pencil.svg" with { type: "text" };
import playSvg from "lucide-static/icons/play.svg" with { type: "text" };
import plusSvg from "lucide-static/icons/plus.svg" with { type: "text" };
import printerSvg from "lucide-static/icons/printer.svg" with { type: "text" };
import refreshCwSvg from "lucide-static/icons/refresh-cw.svg" with { type: "text" };
import searchSvg from "lucide-static/icons/search.svg" with { type: "text" };
import serverSvg from "lucide-static/icons/server.svg" with { type: "text" };
import settingsSvg from "lucide-static/icons/settings.svg" with { type: "text" };
import shieldCheckSvg from "lucide-static/icons/shield-check.svg" with { type: "text" };
import shieldSvg from "lucide-static/icons/shield.svg" with { type: "text" };
import sunSvg from "lucide-static/icons/sun.svg" with { type: "text" };
import trash2Svg from "lucide-static/icons/trash-2.svg" with { type: "text" };
import triangleAlertSvg from "lucide-static/icons/triangle-alert.svg" with { type: "text" };
import uploadSvg from "lucide-static/icons/upload.svg" with { type: "text" };
import userSvg from "lucide-static/icons/user.svg" with { type: "text" };
import usersSvg from "lucide-static/icons/users.svg" with { type: "text" };
import webhookSvg from "lucide-static/icons/webhook.svg" with { type: "text" };
import xSvg from "lucide-static/icons/x.svg" with { type: "text" };

const FILES = {
  "arrow-right": arrowRightSvg,
  ban: banSvg,
  "bell-off": bellOffSvg,
  bell: bellSvg,
  "chart-column": chartColumnSvg,
  check: checkSvg,
  "chevron-right": chevronRightSvg,
  "circle-alert": circleAlertSvg,
  "circle-check": circleCheckSvg,
  "circle-help": circleHelpSvg,
  "circle-minus": circleMinusSvg,
  "circle-x": circleXSvg,
  circle: circleSvg,
  clock: clockSvg,
  copy: copySvg,
  download: downloadSvg,
  ellipsis: ellipsisSvg,
  "external-link": externalLinkSvg,
  eye: eyeSvg,
  "file-text": fileTextSvg,
  "flask-conical": flaskConicalSvg,
  house: houseSvg,
  info: infoSvg,
  "key-round": keyRoundSvg,
  "list-checks": listChecksSvg,
  list: listSvg,
  "log-out": logOutSvg,
  "mail-check": mailCheckSvg,
  mail: mailSvg,
  menu: menuSvg,
  minus: minusSvg,
  moon: moonSvg,
  pause: pauseSvg,
  pencil: pencilSvg,
  play: playSvg,
  plus: plusSvg,
  printer: printerSvg,
  "refresh-cw": refreshCwSvg,
  search: searchSvg,
  server: serverSvg,
  settings: settingsSvg,
  "shield-check": shieldCheckSvg,
  shield: shieldSvg,
  sun: sunSvg,
  "trash-2": trash2Svg,
  "triangle-alert": triangleAlertSvg,
  upload: uploadSvg,
  user: userSvg,
  users: usersSvg,
  webhook: webhookSvg,
  x: xSvg,
};

export type IconName = keyof typeof FILES;

/** The drawing inside an icon's file: everything between its `svg` tags. */
const drawingOf = (file: string): string =>
  // input ≤ 10,000 characters
  /<svg[^>]*>([\s\S]*)<\/svg>/.exec(file)?.[1]?.replace(/\s*\n\s*/g, "") ?? "";

const symbolOf = ([name, file]: [string, unknown]): string =>
  `<symbol id="${name}" viewBox="0 0 24 24">${drawingOf(String(file))}</symbol>`;

/** All icons in one file, so that a page with a hundred of them has none of their drawings. */
export const ICONS = `<svg xmlns="http://www.w3.org/2000/svg">${Object.entries(FILES).map(symbolOf).join("")}</svg>`;

export const ICONS_NAME = "icons.svg";
const ICONS_PATH = hashedPath(ICONS_NAME, ICONS);

/** An icon for people who see it; the word beside it says the same to those who do not. */
export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg class="icon" aria-hidden="true">
    <use href={`${ICONS_PATH}#${name}`} />
  </svg>
);
