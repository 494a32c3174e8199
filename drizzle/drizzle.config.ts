// How drizzle-kit writes the next migration: make migration NAME=what_changes
import { defineConfig } from "drizzle-kit";

export default defineConfig({
  dialect: "sqlite",
  schema: "./drizzle/tables.cjs",
  out: "./drizzle",
  breakpoints: false,
});
