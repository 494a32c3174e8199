// How drizzle-kit writes the next migration: bunx drizzle-kit generate --config drizzle/drizzle.config.ts --name <what changes>
import { defineConfig } from "drizzle-kit";

export default defineConfig({
  dialect: "sqlite",
  schema: "./drizzle/tables.cjs",
  out: "./drizzle",
  breakpoints: false,
});
