from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hudsim.adapters.by_name import ByName
from hudsim.adapters.images import Images, fit
from hudsim.bridges.testcard import TestCardBridge, read_card
from hudsim.contract import Contract
from hudsim.errors import ContractError, UsageError


def _contract(kind: str, shape: list[int], dtype: str = "uint8") -> Contract:
    eye = {"role": "observation", "type": kind, "dtype": dtype, "shape": shape}
    state = {"role": "observation", "dtype": "float32", "shape": [2], "names": ["a", "b"]}
    action = {"role": "action", "dtype": "float32", "shape": [1]}
    features = {"observation/eye": eye, "observation/state": state, "action": action}
    return Contract.load({"schema": "hudsim/1", "control_rate": 50, "features": features})


def _seen(adapter: Images, kind: str, image: Any) -> Any:
    adapter.bind(_contract(kind, list(image.shape), image.dtype.name), {})
    data = {"observation/eye": image, "observation/state": np.array([1, 2], np.float32)}
    return adapter.adapt_observation(data, "look")["observation/eye"][0]


def test_pad_keeps_the_whole_image_crop_its_middle_and_stretch_the_frame() -> None:
    image = np.zeros((40, 80, 3), np.uint8)
    image[:, :40], image[:, 40:] = (200, 0, 0), (0, 200, 0)
    padded = fit(image, 40, 40, "pad")
    assert padded.shape == (40, 40, 3)
    assert not padded[:10].any()
    assert not padded[30:].any()
    assert padded[20, 5].tolist() == [200, 0, 0]
    cropped = fit(image, 40, 40, "crop")
    assert cropped[0, 0].tolist() == [200, 0, 0]
    assert cropped[39, 39].tolist() == [0, 200, 0]
    assert fit(image, 40, 40, "stretch")[0, 39].tolist() == [0, 200, 0]
    assert fit(image, 80, 40) is image
    assert fit(image[..., :1], 20, 20).shape == (20, 20, 1)


def test_an_image_is_neither_flipped_nor_recoloured() -> None:
    bridge = TestCardBridge(width=224, height=224, slot=3)
    bridge.reset()
    image = bridge.get_observation().data["observation/camera0"][0]
    assert read_card(_seen(Images(width=448, height=448), "rgb", image)) == (3, 0)


def test_a_bgr_camera_comes_out_rgb_and_the_other_way_round() -> None:
    red = np.zeros((4, 4, 3), np.uint8)
    red[..., 0] = 250
    assert _seen(Images(), "bgr", red[..., ::-1])[0, 0].tolist() == [250, 0, 0]
    assert _seen(Images(), "rgb", red)[0, 0].tolist() == [250, 0, 0]
    assert _seen(Images(order="bgr"), "rgb", red)[0, 0].tolist() == [0, 0, 250]


def test_ranges_means_and_layouts_are_as_trained() -> None:
    image = np.full((4, 6, 3), 255, np.uint8)
    image[..., 2] = 0
    unit = _seen(Images(value_range="unit", layout="chw"), "rgb", image)
    assert unit.dtype == np.float32
    assert unit.shape == (3, 4, 6)
    assert unit[:, 0, 0].tolist() == [1, 1, 0]
    signed = _seen(Images(value_range="signed"), "rgb", image)
    assert signed[0, 0].tolist() == [1, 1, -1]
    scaled = _seen(Images(value_range="unit", mean=[0.5, 0, 0], std=[0.5, 2, 1]), "rgb", image)
    assert scaled[0, 0].tolist() == [1, 0.5, 0]


def test_depth_is_never_blended() -> None:
    depth = np.full((4, 4), 1.0, np.float32)
    depth[:, 2:] = np.inf
    small = _seen(Images(width=7, height=7), "depth", depth)
    assert set(np.unique(small).tolist()) == {1.0, np.inf}


def test_another_adapter_goes_on_from_there() -> None:
    adapter = Images(
        width=8, height=8, then=ByName(state={"observation/state": ["b"]}, rename={"observation/eye": "e"})
    )
    adapter.bind(_contract("rgb", [4, 4, 3]), {})
    eye, state = np.zeros((4, 4, 3), np.uint8), np.array([1, 2], np.float32)
    data: dict[str, Any] = {"observation/eye": eye, "observation/state": state}
    batch = adapter.adapt_observation(data, "look")
    assert batch["e"].shape == (1, 8, 8, 3)
    assert batch["observation/state"].tolist() == [[2]]
    assert batch["prompt"] == ["look"]


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(UsageError, match="need value_range"):
        Images(mean=[0, 0, 0])
    with pytest.raises(UsageError, match="three numbers"):
        Images(value_range="unit", std=[1])
    with pytest.raises(UsageError, match="expected at least 1x1"):
        Images(width=0)
    blind = _contract("rgb", [4, 4, 3]).to_json()
    del blind["features"]["observation/eye"]
    with pytest.raises(ContractError, match="at least one camera"):
        Images().bind(Contract.load(blind), {})
