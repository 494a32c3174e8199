// Asset imports of the bundler.
declare module "*.css";
