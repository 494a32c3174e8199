// The type of `import … with { type: "text" }` for a template.
declare module "*.txt" {
  const text: string;
  export default text;
}
