// The type of `import … with { type: "text" }` for a migration.
declare module "*.sql" {
  const text: string;
  export default text;
}
