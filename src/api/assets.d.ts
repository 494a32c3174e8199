// Files that are embedded in the executable: importing one `with { type: "file" }` gives its path.
declare module "*/browser/standalone.js" {
  const path: string;
  export default path;
}

// Written by scripts/build-ui.ts; absent until then.
declare module "*/dist/ui/embedded.js" {
  export const files: import("./ui.ts").UiFiles;
}
