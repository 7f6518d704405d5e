declare module "htmx.org/dist/htmx.min.js" {
  const text: string;
  export default text;
}

declare module "uplot/dist/uPlot.iife.min.js" {
  const text: string;
  export default text;
}

declare module "*/assets/share.png" {
  const path: string;
  export default path;
}

declare module "*/assets/app.js" {
  const text: string;
  export default text;
}

declare module "*/assets/manual.js" {
  const text: string;
  export default text;
}
