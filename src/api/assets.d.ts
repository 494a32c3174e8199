// Files that are embedded in the executable: importing one `with { type: "file" }` gives its path.
declare module "*/browser/standalone.js" {
  const path: string;
  export default path;
}
