// Ctrl+K: opens the palette, whose code loads at first use; knows no page.
import { Kbd } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { lazy, Suspense, useEffect } from "react";

const PaletteDialog = lazy(() => import("./palette-dialog.tsx"));

export function Palette() {
  const [isOpen, { open, close }] = useDisclosure(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      // The browser's own search field must not get the focus.
      event.preventDefault();
      if (document.querySelector('[role="dialog"]') === null) open();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [open]);
  return (
    <>
      <button type="button" className="palette-button" onClick={open}>
        <IconSearch size={16} aria-hidden="true" />
        <span className="words-on-wide">Search</span>
        <Kbd size="xs" visibleFrom="sm">
          Ctrl K
        </Kbd>
      </button>
      {isOpen && (
        <Suspense>
          <PaletteDialog onClose={close} />
        </Suspense>
      )}
    </>
  );
}
