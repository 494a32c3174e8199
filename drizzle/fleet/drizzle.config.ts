// How drizzle-kit writes the next migration: bunx drizzle-kit generate --config drizzle/fleet/drizzle.config.ts --name <what changes>
import { defineConfig } from "drizzle-kit";

export default defineConfig({
  dialect: "postgresql",
  schema: "./src/fleet/schema.ts",
  out: "./drizzle/fleet",
  breakpoints: false,
});
