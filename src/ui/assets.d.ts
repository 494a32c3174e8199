// Files that the bundler takes care of.
declare module "*.css";
