// The product logo, a gate in a stream.

export function ProductMark({ size }: { readonly size: number }) {
  return (
    <svg viewBox="0 0 16 16" width={size} height={size} aria-hidden="true">
      <path
        fill="var(--mantine-primary-color-5)"
        d="M1 2h14v2h-2v3h-2V4H9v5H7V4H5v3H3V4H1zm0 9q1.75-2 3.5 0t3.5 0 3.5 0 3.5 0v2q-1.75 2-3.5 0t-3.5 0-3.5 0-3.5 0z"
      />
    </svg>
  );
}
