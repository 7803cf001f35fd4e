BaJ< ZÓ*r 1&„ÛBCmáxF×aÇj
)Y#aÍmÇÿ¦A(Š@qn>ÓÈ¦VqžÔüÔ=¼I;ˆ%