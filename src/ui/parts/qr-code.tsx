// A QR code, drawn locally: its content may be a secret and never leaves the page.
import { useMemo } from "react";
import { encode } from "uqr";

interface Props {
  readonly text: string;
  readonly label: string;
}

/** Dark on white in every color scheme, because cameras expect that; with the quiet zone of the standard. */
export function QrCode({ text, label }: Props) {
  const { size, path } = useMemo(() => {
    const code = encode(text, { ecc: "M", border: 4 });
    const rows = code.data.map((row, y) =>
      row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : "")).join(""),
    );
    return { size: code.size, path: rows.join("") };
  }, [text]);
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${size} ${size}`}
      width={208}
      height={208}
      shapeRendering="crispEdges"
      style={{ background: "#fff", borderRadius: 8 }}
    >
      <path d={path} fill="#000" />
    </svg>
  );
}
