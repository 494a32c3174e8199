// Tells the type checker what `import … with { type: "text" }` gives for a migration.
declare module "*.sql" {
  const text: string;
  export default text;
}
