// Loading placeholders in the size of the content; knows no page.
import { Skeleton, Stack } from "@mantine/core";

/** A page whose code is loading. */
export function PageSkeleton() {
  return (
    <Stack role="status" aria-busy="true" aria-label="Loading">
      <Skeleton h={32} w={220} />
      <Skeleton h={36} />
      <RowsSkeleton />
    </Stack>
  );
}

const ROWS = ["a", "b", "c", "d", "e", "f"];

/** Rows of a list. */
export function RowsSkeleton() {
  return (
    <Stack gap={6} role="status" aria-busy="true" aria-label="Loading">
      {ROWS.map((row) => (
        <Skeleton key={row} h={42} />
      ))}
    </Stack>
  );
}

/** Fields of a form. */
export function FormSkeleton() {
  return (
    <Stack role="status" aria-busy="true" aria-label="Loading" maw={720}>
      {ROWS.map((row) => (
        <Skeleton key={row} h={58} />
      ))}
    </Stack>
  );
}
