declare module "*/widget.js" {
  const text: string;
  export default text;
}
