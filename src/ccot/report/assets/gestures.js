// Mouse, touch and keys on the picture.

const KEY_STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function addGestures(picture, onCursor) {
  const { canvas } = picture;
  const pointers = new Map();

  let last = null;
  const point = (event) => {
    last = event;
    const { x, y } = picture.placeAt(event.clientX, event.clientY);
    picture.setCursor({ row: Math.floor(y), column: Math.floor(x) });
    onCursor(false, event);
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" && !picture.isZoomed && pointers.size === 0) point(event);
    pointers.set(event.pointerId, event);
    if (picture.isZoomed) canvas.setPointerCapture(event.pointerId);
  });

  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return point(event);
    const start = picture.placeAt(before.clientX, before.clientY);
    const spread = pinchWidth(pointers);
    pointers.set(event.pointerId, event);
    if (pointers.size === 2) {
      picture.zoom(pinchWidth(pointers) / (spread || 1), start);
    } else if (picture.isZoomed) {
      const end = picture.placeAt(event.clientX, event.clientY);
      canvas.classList.add("moving");
      picture.pan(start.y - end.y, start.x - end.x);
    }
    point(event);
  });

  for (const type of ["pointerup", "pointercancel", "pointerleave"]) {
    canvas.addEventListener(type, (event) => {
      pointers.delete(event.pointerId);
      canvas.classList.remove("moving");
      // A finger always leaves; what it pointed at stays. So does what the keys point at.
      const stays = event.pointerType === "touch" || document.activeElement === canvas;
      if (type === "pointerleave" && !stays) {
        picture.setCursor(null);
        onCursor(false);
      }
      if (type === "pointerleave") last = null;
    });
  }

  // A pointer that rests while the page scrolls points at something else.
  addEventListener("scroll", () => {
    if (!picture.cursor) return;
    if (last) {
      const { x, y } = picture.placeAt(last.clientX, last.clientY);
      picture.setCursor({ row: Math.floor(y), column: Math.floor(x) });
    }
    // What the keys point at moves with the page, and is still read aloud.
    onCursor(last ? false : null, last);
  }, { passive: true });

  canvas.addEventListener("wheel", (event) => {
    // The wheel alone scrolls the page, as everywhere.
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    picture.zoom(Math.exp(-event.deltaY * 0.004), picture.placeAt(event.clientX, event.clientY));
    point(event);
  }, { passive: false });

  canvas.addEventListener("dblclick", (event) => {
    const { x, y } = picture.placeAt(event.clientX, event.clientY);
    const over = (spans, place) => spans.find(({ start, end }) => start <= place && place < end);
    const [rowSpan, columnSpan] = [over(picture.rows.spans, y), over(picture.columns.spans, x)];
    if (picture.given) picture.zoom(3, { x, y });
    else if (rowSpan && columnSpan) picture.showBlock(rowSpan, columnSpan);
  });

  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = KEY_STEPS[event.key];
    last = null;
    if (step) moveCursor(picture, step, event.shiftKey ? 10 : 1);
    else if (event.key === "+" || event.key === "=") picture.zoom(2, cursorCentre(picture));
    else if (event.key === "-") picture.zoom(0.5, cursorCentre(picture));
    else if (event.key === "0") picture.showAll();
    else return;
    event.preventDefault();
    onCursor(true);
  });
}

function moveCursor(picture, [down, across], steps) {
  const { top, bottom, left, right } = picture.view;
  const [nRows, nColumns] = picture.matrix.shape;
  const { row, column } = picture.cursor ?? {
    row: Math.floor((top + bottom) / 2), column: Math.floor((left + right) / 2),
  };
  const hold = (place, length) => Math.min(Math.max(place, 0), length - 1);
  picture.setCursor({
    row: hold(row + down * steps, nRows), column: hold(column + across * steps, nColumns),
  });
  picture.follow();
}

function cursorCentre({ cursor }) {
  return cursor && { x: cursor.column + 0.5, y: cursor.row + 0.5 };
}

function pinchWidth(pointers) {
  if (pointers.size < 2) return 0;
  const [first, second] = [...pointers.values()];
  return Math.hypot(first.clientX - second.clientX, first.clientY - second.clientY);
}
